"""Who writes lines: the log of one rank, and the telemetry of one node. Collected in memory, written in one piece."""

import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from dlperf_study.core import code_identity, writing
from dlperf_study.records import lines
from dlperf_study.study.communication import Drain
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import LossScaling

#: The clock of all lines.
CLOCK = "perf_counter_ns"


class Rank(Protocol):
    """The position of a trainer, and how it communicates gradients."""

    rank: int
    world_size: int
    communication_kind: str


class RankLogWriter:
    """Collects the lines of one rank log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[Mapping[str, Any]] = []

    def begin(self, rank: Rank, description: Mapping[str, Any], configuration: Configuration) -> None:
        """Add the ``rank`` line: process, code, library and clock.

        Raises TypeError where the description of a trainer has a key that ``RankLine`` does not declare.
        """
        if undeclared := description.keys() - lines.RankLine.__annotations__.keys():
            raise TypeError(f"{', '.join(sorted(undeclared))}: no key of RankLine in records/lines.py")
        node, local_rank = divmod(rank.rank, configuration.devices_per_node)
        process: dict[str, Any] = {
            "kind": "rank",
            "format": lines.FORMAT,
            "run": f"{configuration.configuration_id}/{self._path.parent.name}",
            "code": code_identity.code_of_controller(),
            **{"rank": rank.rank, "world_size": rank.world_size, "node": node, "local_rank": local_rank},
            **{"host": socket.gethostname(), "pid": os.getpid(), "communication": rank.communication_kind},
            "interpreter": sys.version,
        }
        content = process | {**description, "clock": CLOCK, "wall_anchor": wall_anchor()}
        self._lines.append(content)

    def window(self, window: lines.TimedWindow) -> None:
        """Add one window; what it does not have is left out."""
        self._lines.append(window.line())

    def end(
        self,
        initial_checksum: str,
        parameter_checksum: str,
        drain: Drain,
        peak_memory: lines.PeakMemory,
        loss_scaling: LossScaling | None = None,
        injected: lines.InjectedWait | None = None,
        cpu_limit: lines.CpuLimit | None = None,
        computation_obstacle: str = "",
        calibration: lines.Calibration | None = None,
        background_cores: float | None = None,
    ) -> None:
        """Add the ``end`` line, without which a log counts as truncated.

        ``peak_memory``: bytes by name, of the training window. ``injected`` is of the self-test only.
        ``cpu_limit``: what was counted in the training window of a rank that may use a share of the cores only.
        ``computation_obstacle``: why no step can be done without its communication.
        ``calibration``: of the loop before and after the training window. ``background_cores``: see ``EndLine``.
        """
        line: lines.EndLine = {
            "kind": "end",
            "windows": sum(line["kind"] == "window" for line in self._lines),
            "drain_seconds": drain.seconds,
            "drain_resolution_seconds": drain.resolution_seconds,
            "initial_checksum": initial_checksum,
            "parameter_checksum": parameter_checksum,
            "peak_memory": peak_memory,
        }
        if loss_scaling:
            line["loss_scale"] = loss_scaling.scale
        optional = {
            "injected": injected,
            "cpu_limit": cpu_limit,
            "computation_obstacle": computation_obstacle or None,
            "calibration": calibration,
            "background_cores": background_cores,
        }
        measured = {name: value for name, value in optional.items() if value is not None}
        self._lines.append({**line, **measured})

    def write(self) -> None:
        """Write all lines so that the file is either absent or complete."""
        writing.write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in self._lines))


class TelemetryWriter:
    """Collects the lines of the telemetry of one node."""

    def __init__(self, interval_seconds: float, gpus: list[lines.GpuFacts], obstacles: dict[str, str]) -> None:
        self._interval_seconds, self._gpus, self._obstacles = interval_seconds, gpus, obstacles
        self._anchor = wall_anchor()
        self._samples: list[lines.NodeSample] = []

    def add(self, sample: lines.NodeSample) -> None:
        """Add a sample: the first of the node before the run."""
        self._samples.append(sample)

    def write(self, path: Path, node: int, not_reported: dict[str, dict[str, str]]) -> None:
        """Write all lines, so that the file is absent or complete."""
        first: lines.FirstLine = {
            "kind": "telemetry",
            "format": lines.TELEMETRY_FORMAT,
            "host": socket.gethostname(),
            "interval_seconds": self._interval_seconds,
            "clock": CLOCK,
            "wall_anchor": self._anchor,
            "gpus": self._gpus,
            "obstacles": self._obstacles,
            "node": node,
        }
        last: lines.LastLine = {"kind": "end", "samples": len(self._samples), "not_reported": not_reported}
        writing.write_atomically(path, "".join(json.dumps(line) + "\n" for line in (first, *self._samples, last)))


def wall_anchor() -> lines.WallAnchor:
    """Return this moment on both clocks."""
    return {"unix_ns": time.time_ns(), "clock_ns": time.perf_counter_ns()}
