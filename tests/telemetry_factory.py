"""Telemetry of runs on machines with GPUs or energy counters, for machines without."""

from typing import Any

import numpy as np

from dlperf_study.core.paths import RunPaths
from dlperf_study.records.run import Run, read_run
from dlperf_study.records.writers import TelemetryWriter
from tests.evidence_factory import read_lines, write_lines

UUID = "GPU-2f9a4c1e-7b4d-11ee-b962-0242ac120002"
#: When the training window begins on the clock of the node, and what one second is.
BEGIN_NS, SECOND = 100_000_000_000, 1_000_000_000


def gpu(watts: float = 300.0, seconds: float = 0.0, **changes: Any) -> dict[str, Any]:
    """Return a sample of a GPU that took so much power until then; a change to None leaves a value out."""
    values: dict[str, Any] = {
        "utilisation": 0.9,
        "memory_used_bytes": 30 * 2**30,
        "power_watts": watts,
        "energy_joules": 5000.0 + watts * seconds,
        "sm_clock_mhz": 1400,
        "memory_clock_mhz": 1593,
        "temperature_celsius": 60,
        "clock_limits": 0,
        "process_ids": [],
        "run_process_ids": [],
    }
    return {name: value for name, value in (values | changes).items() if value is not None}


def sample(
    seconds: float, gpus: list[dict[str, Any]], joules: dict[str, float] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a sample of a node so many seconds after the beginning of the window; ``more``: further values of it."""
    return {
        "clock_ns": BEGIN_NS + round(seconds * SECOND),
        "sampling_seconds": 0.002,
        "memory_used_bytes": 4 * 2**30 + round(seconds),
        "cpu_energy_joules": joules or {},
        "gpus": gpus,
        **more,
    }


def with_telemetry(
    paths: RunPaths,
    before: dict[str, Any],
    samples: list[dict[str, Any]],
    gpus: list[dict[str, Any]] | None = None,
    obstacles: dict[str, str] | None = None,
    not_reported: dict[str, dict[str, str]] | None = None,
) -> Run:
    """Give a run on one node telemetry, and its ranks the time at which their windows began; return the run."""
    writer = TelemetryWriter(1.0, [{"uuid": UUID}] if gpus is None else gpus, obstacles or {})
    for kind, values in (("before", before), *(("sample", each) for each in samples)):
        writer.add({"kind": kind} | values)
    writer.write(paths.telemetry(0), 0, not_reported or {})
    first_rank = read_lines(min(paths.folder.glob("rank-*.jsonl")))[0]
    telemetry = read_lines(paths.telemetry(0))
    telemetry[0] |= {"host": first_rank["host"], "wall_anchor": first_rank["wall_anchor"]}
    write_lines(paths.telemetry(0), telemetry)
    state_beginning(paths)
    return read_run(paths)


def state_beginning(paths: RunPaths) -> None:
    """Let the ranks of a run say when their windows began, each when the one before it ended."""
    for log in paths.folder.glob("rank-*.jsonl"):
        lines = read_lines(log)
        windows = [line for line in lines if line["kind"] == "window"]
        ends = np.cumsum([round(window["seconds"] * SECOND) for window in windows])
        training = next(index for index, window in enumerate(windows) if window["name"] == "training")
        for window, end in zip(windows, ends, strict=True):
            window["begin_ns"] = int(BEGIN_NS + end - ends[training - 1] - round(window["seconds"] * SECOND))
        write_lines(log, lines)
