"""Telemetry of a node is read as it was written, or refused in one message that names the file and the line."""

from pathlib import Path

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.records.telemetry import read_telemetry
from dlperf_study.records.writers import TelemetryWriter
from tests.evidence_factory import edit_log
from tests.telemetry_factory import BEGIN_NS, SECOND, UUID, gpu, sample


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


#: What is done to the lines, and what is said of it.
DAMAGES = {
    "without end": (lambda lines: lines.pop(), "truncated, it has no end line"),
    "without a sample": (lambda lines: lines.pop(2), "truncated, it has 3 of 4 samples"),
    "without before": (lambda lines: lines[1].update(kind="sample"), "not telemetry, before, sample, …, end"),
    "one GPU more": (lambda lines: lines[3]["gpus"].append({}), "line 4 has 2 GPUs, but the first line 1"),
    "back in time": (lambda lines: lines[3].update(clock_ns=1), "line 4 is earlier than the line before it"),
    "negative power": (
        lambda lines: lines[2]["gpus"][0].update(power_watts=-1.0),
        "line 3: gpus[0].power_watts is -1.0",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_said(path, damage, message):
    edit_log(path, damage)
    with pytest.raises(RecordError) as refusal:
        read_telemetry(path)
    assert str(refusal.value).startswith(str(path))
    assert message in str(refusal.value)
