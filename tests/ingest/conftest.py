"""Folders of logs with constructed numbers, which must never be shown as measurements."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.ingest.identification import IdentifiedLogs, identify_logs
from dlperf_study.ingest.ingestion import ingest
from dlperf_study.paths import OUTPUTS_VARIABLE, PROJECT, StudyPaths

SAMPLES = PROJECT / "tests" / "logs" / "samples"
STEPS = 120
#: Samples/s of one device, and of each of several.
RATE = 350.0

#: The required metadata of a configuration.
REQUIRED_METADATA = {
    "framework": "paddle",
    "model": "resnet50",
    "nodes": 1,
    "devices_per_node": 1,
    "servers": 0,
    "batch_per_device": 128,
    "precision": "fp32",
}

WriteLog = Callable[..., Path]
Ingest = Callable[..., Dataset]


def elapse_lines(devices: int, batch: int, seed: int, steps: int = STEPS, head: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of one Paddle 1.8 log: five slow steps, then RATE of each device within 1 %."""
    noise = random.Random(seed)
    seconds = [batch / RATE * (3 if step < 5 else 1) * (1 + 0.01 * noise.uniform(-1, 1)) for step in range(steps + 1)]
    return [
        *head,
        *(f"[Pass 0, train batch {k}] \tloss {7 - k / 100:.5f}, elapse {s:.4f} sec" for k, s in enumerate(seconds)),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "logs"
    path.mkdir()
    return path


@pytest.fixture
def write_log(folder: Path) -> WriteLog:
    """Return a function that writes the log of one run."""

    def write(relative_path: str, devices: int = 1, batch: int = 128, seed: int | None = None, **more: object) -> Path:
        path = folder / relative_path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = elapse_lines(devices, batch, seed if seed is not None else crc32(relative_path.encode()), **more)  # type: ignore[arg-type]
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture
def small_archive(write_log: WriteLog) -> None:
    """Three repetitions on one, eight and eighty devices, as DLPerf laid them out."""
    for case, devices in (("1n1g", 1), ("1n8g", 8), ("10n8g", 80)):
        for repetition in (1, 2, 3):
            write_log(f"{case}/r50_b128_fp32_{repetition}.log", devices, seed=devices * 10 + repetition)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    return StudyPaths.of("logs")


@pytest.fixture
def ingested(folder: Path, paths: StudyPaths) -> Ingest:
    """Return a function that accepts the proposed identity of the folder, ingests it and loads the dataset."""

    def do(logs: IdentifiedLogs | None = None) -> Dataset:
        logs = logs or identify_logs(folder, accept=True)
        ingest(logs.identity, logs.files, logs.folder, paths, lambda read: None)
        return Dataset.load(paths)

    return do


def declare(folder: Path, **changes: object) -> None:
    """Write the declared metadata of the logs of a folder; what is None is not declared."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {name: value for name, value in {**REQUIRED_METADATA, **changes}.items() if value is not None}
    (folder / "configuration.json").write_text(json.dumps(content))


def errors_of(dataset: Dataset) -> list[str]:
    rows = dataset.diagnostics
    return list(rows.loc[rows["severity"] == "error", "message"])


def reason(dataset: Dataset, repetition: int, nodes: int = 1, devices_per_node: int = 1) -> str:
    """Return why a run was refused; empty if it was counted."""
    runs = dataset.runs
    [row] = runs[
        (runs["repetition"] == repetition) & (runs["nodes"] == nodes) & (runs["devices_per_node"] == devices_per_node)
    ].itertuples()
    assert (row.outcome == "completed") == (not row.reason) == (not np.isnan(row.throughput))
    return str(row.reason)
