"""The log of one rank, read as ``docs/evidence.md`` describes it: which process measured, and every timed window."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlperf_study.arrays import Floats
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.json_fields import (
    Object,
    Types,
    check_not_negative,
    check_positive,
    check_types,
    object_of,
    text_of,
)
from dlperf_study.evidence.rank_log_writer import EXCHANGE, FORMAT, TRAINING, WARMUP, WarmupEnd, part_of_exchange

#: By how much the steps of a window may exceed it: the clocks of a device and of its host differ a little.
CLOCK_TOLERANCE = 0.01


@dataclass(frozen=True)
class Window:
    """Measured steps of one kind. ``step_seconds`` has one value per step; ``losses`` too, or none.

    ``bytes`` is of an exchange only, ``ended_by`` of the warm-up only.
    """

    name: str
    seconds: float
    step_seconds: Floats
    losses: Floats
    bytes: int | None
    ended_by: WarmupEnd | None

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.step_seconds.size

    @property
    def mean_seconds(self) -> float:
        """Seconds of the window / its steps."""
        return self.seconds / self.steps


@dataclass(frozen=True)
class RankLog:
    """The complete log of one rank; ``facts`` is its ``rank`` line, ``end`` its last."""

    rank: int
    facts: Object
    windows: Mapping[str, Window]
    end: Object

    @property
    def process(self) -> tuple[str, int, int]:
        """The process that wrote it: its host, its process id, and when it began (ns since 1970)."""
        return self.facts["host"], self.facts["pid"], self.facts["wall_anchor"]["unix_ns"]


def read_rank_log(path: Path) -> RankLog:
    """Read the log of one rank.

    Raises:
        EvidenceError: the log is missing, truncated, or contradicts itself.

    """
    lines: list[Object] = []
    for line_number, line in enumerate(text_of(path).splitlines(), 1):
        lines.append(object_of(line, f"{path}: line {line_number}"))
    kinds = [line.get("kind") for line in lines]
    if kinds[-1:] != ["end"]:
        raise EvidenceError(f"{path}: truncated, it has no end line")
    if kinds[:1] != ["rank"] or set(kinds[1:-1]) - {"window"}:
        raise EvidenceError(f"{path}: its lines are {', '.join(map(str, kinds))}, not rank, window, …, end")
    return _rank_log(lines, str(path))


def _rank_log(lines: list[Object], source: str) -> RankLog:
    facts, *window_lines, end = lines
    check_format(facts, source)
    check_types(facts, source, **_RANK_KEYS)
    check_types(end, source, **_END_KEYS)
    check_types(facts["wall_anchor"], f"{source}: wall_anchor", unix_ns=int, clock_ns=int)
    check_positive(facts, source, "flops_per_sample", "parameters")
    check_not_negative(facts, source, "gradient_bytes", "exchange_threads")
    check_not_negative(end, source, "drain_seconds", "drain_resolution_seconds")
    if end["windows"] != len(window_lines):
        raise EvidenceError(f"{source}: truncated, it has {len(window_lines)} of {end['windows']} windows")
    windows: dict[str, Window] = {}
    for line in window_lines:
        window = _window(line, source)
        windows[window.name] = window
    if len(windows) < len(window_lines) or TRAINING not in windows:
        raise EvidenceError(f"{source}: needs one {TRAINING} window and no window twice, has {', '.join(windows)}")
    for window in windows.values():
        _check_bytes(window, facts["gradient_bytes"], source)
    return RankLog(facts["rank"], facts, windows, end)


def _check_bytes(window: Window, gradient_bytes: int, source: str) -> None:
    """Check that an exchange moved all gradients, or the part of them after which its window is named."""
    if not window.name.startswith(EXCHANGE):
        return
    size = gradient_bytes if window.name == EXCHANGE else window.bytes
    if type(window.bytes) is not int or window.bytes != size or not 0 < size <= gradient_bytes:
        sizes = f"{window.bytes} bytes, but the gradients have {gradient_bytes}"
        raise EvidenceError(f"{source}: window {window.name} exchanged {sizes}")
    if window.name not in (EXCHANGE, part_of_exchange(size)):
        raise EvidenceError(f"{source}: window {window.name} exchanged {size} bytes, so that is not its name")


def _window(line: Object, source: str) -> Window:
    check_types(line, source, name=str, steps=int, seconds=(int, float), step_seconds=list, losses=list)
    try:
        step_seconds = np.asarray(line["step_seconds"], dtype=np.float64)
        losses = np.asarray(line["losses"], dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise EvidenceError(f"{source}: window {line['name']}: {error}") from error
    seconds, ended_by = float(line["seconds"]), _warmup_end(line, source)
    window = Window(line["name"], seconds, step_seconds, losses, line.get("bytes"), ended_by)
    steps = line["steps"]
    if window.step_seconds.shape != (steps,) or window.losses.shape not in ((steps,), (0,)):
        raise EvidenceError(f"{source}: window {window.name} does not have one time and one loss for each step")
    if not steps and window.name != WARMUP:
        raise EvidenceError(f"{source}: window {window.name} has no step")
    if not (window.step_seconds > 0).all():
        raise EvidenceError(f"{source}: window {window.name} has a step time that is not above 0")
    total = float(window.step_seconds.sum())
    if not abs(total - window.seconds) <= window.seconds * CLOCK_TOLERANCE or not math.isfinite(window.seconds):
        raise EvidenceError(f"{source}: window {window.name} lasts {window.seconds} s but its steps {total} s")
    return window


def _warmup_end(line: Object, source: str) -> WarmupEnd | None:
    """Return why the warm-up ended, which each warm-up says and no other window."""
    ended_by = line.get("ended_by")
    if line["name"] == WARMUP and ended_by in list(WarmupEnd):
        return WarmupEnd(ended_by)
    if line["name"] == WARMUP or ended_by is not None:
        choices = f"only a {WARMUP} has that, one of {', '.join(WarmupEnd)}"
        raise EvidenceError(f"{source}: window {line['name']}: ended_by is {ended_by!r}; {choices}")
    return None


def check_format(facts: Object, source: str) -> None:
    """Check that a record or a log is of the format that this program reads, before anything else is looked at."""
    check_types(facts, source, format=int)
    if facts["format"] != FORMAT:
        raise EvidenceError(f"{source}: format is {facts['format']}; this program reads format {FORMAT}")


_RANK_KEYS: dict[str, Types] = {
    "run": str,
    "code": str,
    "rank": int,
    "world_size": int,
    "node": int,
    "local_rank": int,
    "host": str,
    "pid": int,
    "wall_anchor": dict,
    "device": str,
    "library": str,
    "library_version": str,
    "parameters": int,
    "gradient_bytes": int,
    "flops_per_sample": (int, float, type(None)),
    "exchange": str,
    "exchange_threads": int,
}
_END_KEYS: dict[str, Types] = {
    "windows": int,
    "parameter_checksum": str,
    "initial_checksum": str,
    "drain_seconds": (int, float),
    "drain_resolution_seconds": (int, float),
}
