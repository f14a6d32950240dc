"""The log of one rank: collected in memory, written in one piece when the windows are over."""

import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dlperf_study.cluster.software import measuring_code
from dlperf_study.paths import write_atomically
from dlperf_study.study.configuration import Configuration

#: The format of the record and the logs of a run, as ``docs/evidence.md`` describes it.
FORMAT = 1


class Rank(Protocol):
    """The position of a trainer in its run, and how it exchanges gradients."""

    rank: int
    world_size: int
    exchange_kind: str


@dataclass(frozen=True)
class TimedWindow:
    """Measured steps of one kind: ``step_seconds`` and ``losses`` hold one value per step."""

    name: str
    step_seconds: list[float]
    losses: list[float]
    bytes: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds from the barrier to the end of the last step."""
        return sum(self.step_seconds)


class RankLogWriter:
    """Collects the lines of the log of one rank; ``write`` puts them on disk atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[dict[str, Any]] = []

    def begin(self, rank: Rank, description: dict[str, Any], configuration: Configuration) -> None:
        """Add the ``rank`` line: which process measures, with which code and library, and the anchor of its clock."""
        node, local_rank = divmod(rank.rank, configuration.devices_per_node)
        run = f"{configuration.identity}/{self._path.parent.name}"
        position = {"rank": rank.rank, "world_size": rank.world_size, "node": node, "local_rank": local_rank}
        process = {"host": socket.gethostname(), "pid": os.getpid(), "exchange": rank.exchange_kind}
        identity = {"format": FORMAT, "run": run, "code": measuring_code()}
        anchor = {"unix_ns": time.time_ns(), "clock_ns": time.perf_counter_ns()}
        clock = {"clock": "perf_counter_ns", "wall_anchor": anchor}
        self._add("rank", identity | position | process | description | clock)

    def window(self, window: TimedWindow) -> None:
        """Add one window."""
        values: dict[str, Any] = {
            "name": window.name,
            "steps": len(window.step_seconds),
            "seconds": window.seconds,
            "step_seconds": window.step_seconds,
            "losses": window.losses,
        }
        self._add("window", values | ({} if window.bytes is None else {"bytes": window.bytes}))

    def end(self, initial_checksum: str, parameter_checksum: str, drain_seconds: float) -> None:
        """Add the ``end`` line, without which a log counts as truncated."""
        windows = sum(line["kind"] == "window" for line in self._lines)
        checksums = {"initial_checksum": initial_checksum, "parameter_checksum": parameter_checksum}
        self._add("end", {"windows": windows, "drain_seconds": drain_seconds} | checksums)

    def write(self) -> None:
        """Write all lines so that the file is either absent or complete."""
        write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in self._lines))

    def _add(self, kind: str, values: dict[str, Any]) -> None:
        self._lines.append({"kind": kind} | values)
