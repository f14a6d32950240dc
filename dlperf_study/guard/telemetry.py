"""Telemetry of a node during a run, sampled by its guard: no rank samples, and no process is started for it."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from dlperf_study.evidence.telemetry_writer import TelemetryWriter
from dlperf_study.guard.cpu_energy import CpuEnergy
from dlperf_study.guard.gpu_telemetry import GpuTelemetry
from dlperf_study.supervision.processes import RUN_MARK, is_marked

INTERVAL_SECONDS = 1.0


class Telemetry:
    """Samples of this node: one of it before the run, when this object is made, then one a second.

    ``uuids`` are those of the GPUs that the run uses; ``mark`` is in the environment of its processes.
    """

    def __init__(self, uuids: Iterable[str], mark: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._mark = mark
        self._clock = clock
        self._gpus, self._cpus = GpuTelemetry(uuids), CpuEnergy()
        obstacles = {"gpus": self._gpus.obstacle, "cpu_energy": self._cpus.obstacle}
        named_obstacles = {name: obstacle for name, obstacle in obstacles.items() if obstacle}
        self._writer = TelemetryWriter(INTERVAL_SECONDS, self._gpus.facts(), named_obstacles)
        self._due = clock()
        self._sample("before")

    def sample_if_due(self) -> bool:
        """Take a sample if the last one was a second ago, and return whether; what was missed is not made up for."""
        now = self._clock()
        if now < self._due:
            return False
        self._due = max(self._due + INTERVAL_SECONDS, now + INTERVAL_SECONDS / 2)
        self._sample("sample")
        return True

    def _sample(self, kind: str) -> None:
        begin_ns = time.perf_counter_ns()
        gpus = self._gpus.sample()
        memory = psutil.virtual_memory()
        energy = self._cpus.joules()
        end_ns = time.perf_counter_ns()
        for gpu in gpus:
            if "process_ids" in gpu:
                # In a container the driver's ids may be those of other processes: the reader needs both lists.
                gpu["run_process_ids"] = [pid for pid in gpu["process_ids"] if is_marked(pid, RUN_MARK, self._mark)]
        values: dict[str, Any] = {"clock_ns": begin_ns, "sampling_seconds": (end_ns - begin_ns) * 1e-9}
        values |= {"memory_used_bytes": memory.total - memory.available, "cpu_energy_joules": energy, "gpus": gpus}
        self._writer.add(kind, values)

    def close(self, path: Path, node: int) -> None:
        """Take the last sample, write all, and close the libraries; raises OSError where nothing can be written."""
        self._sample("sample")
        self._gpus.close()
        self._writer.write(path, node, self._gpus.not_reported)
