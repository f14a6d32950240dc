"""Whether the windows of a run were measured in order, one after the other, within the life of its processes."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dlperf_study.evidence.lines import (
    COMPUTATION_AFTER,
    COMPUTATION_BEFORE,
    EXCHANGE,
    INPUT,
    TRAINING,
    WARMUP,
    part_of_exchange,
)
from dlperf_study.evidence.rank_log import CLOCK_TOLERANCE, NANO, RankLog, Window

#: In this order windows are measured; exchanges of more bytes after those of fewer, all after those of a kind or group.
ORDER = (WARMUP, COMPUTATION_BEFORE, TRAINING, COMPUTATION_AFTER, EXCHANGE, INPUT)


def contradictory_times(logs: Sequence[RankLog], seconds: float | None) -> Iterator[str]:
    """Yield which windows can't have been measured when their logs say it.

    ``seconds``: the life of the processes of the run; None: unknown.
    """
    for log in logs:
        windows = list(log.windows.values())
        for earlier, later in pairwise(windows):
            if _position(earlier) > _position(later):
                yield f"rank {log.rank} has window {later.name} after {earlier.name}, before which it is measured"
            if _end_ns(earlier) > _begin_ns(later):
                yield f"window {later.name} of rank {log.rank} begins before window {earlier.name} ends"
        yield from _outside(log, windows, seconds)


def _outside(log: RankLog, windows: Sequence[Window], seconds: float | None) -> Iterator[str]:
    """Yield that the windows of a rank last longer than its run, or begin before its process did, or end after it."""
    measured = sum(window.seconds for window in windows)
    if seconds is not None and measured > seconds * (1 + CLOCK_TOLERANCE):
        yield f"the windows of rank {log.rank} last {measured:.4g} s, but the run {seconds:.4g} s"
    rank, anchor = f"rank {log.rank}", log.facts["wall_anchor"]["clock_ns"]
    for window in windows:
        if window.begin_ns is None:
            continue
        before, after = (anchor - window.begin_ns) * NANO, (_end_ns(window) - anchor) * NANO
        if before > 0:
            yield f"window {window.name} of {rank} begins {before:.4g} s before {rank} had begun"
        if seconds is not None and after > seconds * (1 + CLOCK_TOLERANCE):
            yield f"window {window.name} ends {after:.4g} s after {rank} had begun, of the run's {seconds:.4g} s"


def _position(window: Window) -> tuple[int, float]:
    """Return where a window is in the order of all; windows of other names, of later versions, come last."""
    if window.name.startswith(EXCHANGE):
        # Ranks that have different collectives agree on one order of their kinds and groups.
        is_of_bytes = window.name == EXCHANGE or window.name.removeprefix(part_of_exchange("")).isdigit()
        return ORDER.index(EXCHANGE), (window.bytes or 0) if is_of_bytes else 0
    return (ORDER.index(window.name) if window.name in ORDER else len(ORDER)), 0


def _begin_ns(window: Window) -> float:
    return float("inf") if window.begin_ns is None else window.begin_ns


def _end_ns(window: Window) -> float:
    """Return when a window ended at the earliest: the clock of a device may count more than that of its host."""
    seconds = window.seconds * (1 - CLOCK_TOLERANCE)
    return float("-inf") if window.begin_ns is None else window.begin_ns + seconds / NANO
