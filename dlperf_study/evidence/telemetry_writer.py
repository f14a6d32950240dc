"""What a guard sampled on its node during a run: collected in memory, written in one piece when the run is over.

Standard library only: it is part of the measuring code.
"""

import json
import socket
import time
from pathlib import Path
from typing import Any

from dlperf_study.writing import write_atomically

#: The format of these files, as ``docs/evidence.md`` describes it.
TELEMETRY_FORMAT = 1


class TelemetryWriter:
    """Collects the lines of the telemetry of one node; ``write`` puts them on disk atomically."""

    def __init__(self, interval_seconds: float, gpus: list[dict[str, Any]], obstacles: dict[str, str]) -> None:
        anchor = {"unix_ns": time.time_ns(), "clock_ns": time.perf_counter_ns()}
        self._first = {
            "kind": "telemetry",
            "format": TELEMETRY_FORMAT,
            "host": socket.gethostname(),
            "interval_seconds": interval_seconds,
            "clock": "perf_counter_ns",
            "wall_anchor": anchor,
            "gpus": gpus,
            "obstacles": obstacles,
        }
        self._samples: list[dict[str, Any]] = []

    def add(self, kind: str, values: dict[str, Any]) -> None:
        """Add a sample of kind ``before``, of the node before the run, or ``sample``."""
        self._samples.append({"kind": kind} | values)

    def write(self, path: Path, node: int, not_reported: dict[str, dict[str, str]]) -> None:
        """Write all lines, so that the file is either absent or complete; raises OSError where that can't be done."""
        last = {"kind": "end", "samples": len(self._samples), "not_reported": not_reported}
        lines = [self._first | {"node": node}, *self._samples, last]
        write_atomically(path, "".join(json.dumps(line) + "\n" for line in lines))
