"""The log of one rank: collected in memory, written in one piece when the windows are over."""

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from dlperf_study.frameworks._base import Trainer
from dlperf_study.paths import write_atomically
from dlperf_study.study.configuration import Configuration
from dlperf_study.worker.windows import Window

FORMAT = 1


class RankLog:
    """Collects the lines of a rank log; ``write`` puts them on disk atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[dict[str, Any]] = []

    def begin(self, trainer: Trainer, description: dict[str, Any], configuration: Configuration) -> None:
        """Add the ``rank`` line: who measures, with which library, and the anchor of its clock."""
        node, local_rank = divmod(trainer.rank, configuration.devices_per_node)
        run = f"{configuration.identity}/{self._path.parent.name}"
        place = {"rank": trainer.rank, "world_size": trainer.world_size, "node": node, "local_rank": local_rank}
        process = {"host": socket.gethostname(), "pid": os.getpid(), "exchange": trainer.exchange_kind}
        self._add("rank", {"format": FORMAT, "run": run} | place | process | description | _clock())

    def window(self, window: Window) -> None:
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
        """Write all lines so that the file is either absent or whole."""
        write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in self._lines))

    def _add(self, kind: str, values: dict[str, Any]) -> None:
        self._lines.append({"kind": kind} | values)


def _clock() -> dict[str, Any]:
    return {
        "clock": "perf_counter_ns",
        "wall_anchor": {"unix_ns": time.time_ns(), "clock_ns": time.perf_counter_ns()},
    }
