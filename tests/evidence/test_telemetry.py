"""Telemetry of a node is read as it was written, or refused in one message that names the file and the line."""

import json
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.errors import EvidenceError
from dlperf_study.evidence.telemetry import read_telemetry
from dlperf_study.evidence.writers import TelemetryWriter
from tests.telemetry_factory import BEGIN_NS, SECOND, UUID, gpu, sample

Lines = list[dict[str, Any]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    writer = TelemetryWriter(1.0, [{"uuid": UUID, "name": "A100"}], {"cpu_energy": "none here"})
    for kind, seconds in (("before", -5), ("sample", 0), ("sample", 1), ("sample", 2)):
        writer.add({"kind": kind} | sample(seconds, [gpu(300, seconds)]))
    writer.write(tmp_path / "telemetry-00002.jsonl", 2, {UUID: {"power_watts": "Not Supported"}})
    return tmp_path / "telemetry-00002.jsonl"


def test_what_was_written_is_read(path):
    telemetry = read_telemetry(path)
    assert (telemetry.node, telemetry.facts["gpus"][0]["uuid"]) == (2, UUID)
    assert telemetry.before["clock_ns"] == BEGIN_NS - 5 * SECOND
    assert telemetry.not_reported == {UUID: {"power_watts": "Not Supported"}}
    times = [each["clock_ns"] for each in telemetry.between(BEGIN_NS + 1, BEGIN_NS + 2 * SECOND)]
    assert times == [BEGIN_NS + SECOND, BEGIN_NS + 2 * SECOND]


def _without_end(lines: Lines) -> None:
    del lines[-1]


def _without_a_sample(lines: Lines) -> None:
    del lines[2]


def _without_before(lines: Lines) -> None:
    lines[1]["kind"] = "sample"


def _one_gpu_more(lines: Lines) -> None:
    lines[3]["gpus"].append({})


def _back_in_time(lines: Lines) -> None:
    lines[3]["clock_ns"] = 1


def _negative_power(lines: Lines) -> None:
    lines[2]["gpus"][0]["power_watts"] = -1.0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without_end, "truncated, it has no end line"),
        (_without_a_sample, "truncated, it has 3 of 4 samples"),
        (_without_before, "not telemetry, before, sample, …, end"),
        (_one_gpu_more, "line 4 has 2 GPUs, but the first line 1"),
        (_back_in_time, "line 4 is earlier than the line before it"),
        (_negative_power, "line 3: gpus[0].power_watts is -1.0"),
    ],
)
def test_damage_is_said(path, damage, message):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    damage(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(EvidenceError) as refusal:
        read_telemetry(path)
    assert str(refusal.value).startswith(str(path))
    assert message in str(refusal.value)
