"""Levels of a series of printed throughputs, and words for their changes.

Change points minimise the sum of squares about the means between them plus a penalty for each: optimal partitioning
(Jackson et al. 2005), whose optimum PELT (Killick et al. 2012) finds too. It is computed for at most MOST_PIECES means
of successive lines, and each change is then moved to the line where it fits best, in linear time. The words are those
of Barrett et al., "Virtual Machine Warmup Blows Hot and Cold" (OOPSLA 2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.metrics import steady_state

MOST_PIECES = 64
#: The shortest level, in lines.
SHORTEST = 3
#: Each change costs this × the variance of the noise × log(pieces): twice that of Schwarz's criterion for a mean.
PENALTY = 4.0
#: Deviations smaller than this share of the mean are no noise but rounding.
SMALLEST_NOISE = 0.002
#: The last level is a steady state from this share of the lines on, and a level of its own from that one on.
STEADY_SHARE, LONG_SHARE = 0.25, 0.2


class Behaviour(StrEnum):
    """Behaviour of a throughput over a log; defined in ``docs/log-formats.md``."""

    FLAT = "flat"
    WARM_UP = "warm-up"
    SLOW_DOWN = "slow-down"
    NO_STEADY_STATE = "no steady state"


@dataclass(frozen=True)
class Level:
    """Lines from ``first`` to before ``end``; ``seconds``: their mean per sample."""

    first: int
    end: int
    seconds: float

    @property
    def lines(self) -> int:
        """Their number."""
        return self.end - self.first

    def is_slower(self, other: "Level", share: float = steady_state.TOLERANCE) -> bool:
        """Return whether its throughput is lower by more than a share."""
        return self.seconds > (1 + share) * other.seconds


def find_levels(seconds: Floats) -> tuple[Level, ...]:
    """Return successive levels, which differ by more than TOLERANCE."""
    bounds = np.array([0, *change_points(seconds), seconds.size])
    sums = np.zeros(seconds.size + 1)
    np.cumsum(seconds, out=sums[1:])
    means = np.diff(sums[bounds]) / np.diff(bounds)
    levels: list[Level] = []
    last = means.size - 1
    # From the end, because the last level is the one that counts.
    for segment in reversed(range(means.size)):
        if means[segment : last + 1].max() > (1 + steady_state.TOLERANCE) * means[segment : last + 1].min():
            levels.append(_level(sums, bounds[segment + 1], bounds[last + 1]))
            last = segment
    levels.append(_level(sums, 0, bounds[last + 1]))
    return tuple(reversed(levels))


def startup_lines(levels: Sequence[Level]) -> int:
    """Return the lines of slower first levels; at most half."""
    last, lines = levels[-1], 0
    for level in levels[:-1]:
        if not level.is_slower(last):
            break
        lines = level.end
    return lines if 2 * lines <= last.end else 0


def separate_levels(seconds: Floats, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return the long levels of a throughput that jumps, not drifts.

    It jumps if the levels differ by more than twice their own changes.
    """
    fewest = max(LONG_SHARE * seconds.size, steady_state.MINIMUM_STEPS)
    long = [level for level in levels if level.lines >= fewest]
    if len(long) < 2:
        return ()
    drifts = []
    for level in long:
        drifts.append(steady_state.steadiness_of_usual(seconds[level.first : level.end]).difference)
    for index, (before, after) in enumerate(pairwise(long)):
        drift = 2 * (drifts[index] + drifts[index + 1])
        if before.is_slower(after, max(steady_state.TOLERANCE, drift)) or after.is_slower(
            before, max(steady_state.TOLERANCE, drift)
        ):
            return tuple(long)
    return ()


def classify_behaviour(seconds: Floats, levels: Sequence[Level], has_startup: bool) -> Behaviour | None:
    """Return the word for a series; None if it is too short."""
    if seconds.size < steady_state.MINIMUM_STEPS:
        return None
    last, earlier = levels[-1], levels[:-1]
    if last.lines < STEADY_SHARE * seconds.size:
        return Behaviour.NO_STEADY_STATE
    answer = steady_state.steadiness_of_usual(seconds[last.first :]).answer
    if answer is not steady_state.Answer.STEADY:
        if answer is steady_state.Answer.NOT_STEADY:
            return Behaviour.NO_STEADY_STATE
        return None
    if any(map(last.is_slower, earlier)):
        return Behaviour.SLOW_DOWN
    if all(level.is_slower(last) for level in earlier):
        if earlier or has_startup:
            return Behaviour.WARM_UP
        return Behaviour.FLAT
    return Behaviour.NO_STEADY_STATE


def change_points(seconds: Floats) -> list[int]:
    """Return the lines at which the mean of a series changes."""
    size = -(-seconds.size // MOST_PIECES)
    offset = seconds.size % size
    pieces = seconds[offset:].reshape(-1, size).mean(axis=1)
    if pieces.size < 2 * SHORTEST:
        return []
    mean = float(pieces.mean())
    deviation, correlation = steady_state.noise(pieces)
    error = max(deviation * steady_state.mean_error_factor(correlation), SMALLEST_NOISE * mean)
    penalty = PENALTY * error**2 * float(np.log(pieces.size))
    changes = _optimal_changes(pieces - mean, penalty, -(-SHORTEST // size))
    return _moved(seconds, [offset + size * change for change in changes], size)


def _optimal_changes(pieces: Floats, penalty: float, shortest: int) -> list[int]:
    """Return starts of segments of at least ``shortest`` pieces, at minimal cost."""
    count = pieces.size
    sums = np.concatenate(([0.0], np.cumsum(pieces)))
    squares = np.concatenate(([0.0], np.cumsum(np.square(pieces))))
    lengths = np.arange(count + 1) - np.arange(count + 1)[:, None]
    costs = squares - squares[:, None] - np.square(sums - sums[:, None]) / np.maximum(lengths, 1)
    costs[lengths < shortest] = np.inf
    best = np.full(count + 1, -penalty)
    previous = np.zeros(count + 1, dtype=np.int64)
    for end in range(1, count + 1):
        totals = best[:end] + costs[:end, end]
        previous[end] = np.argmin(totals)
        best[end] = totals[previous[end]] + penalty
    changes = []
    end = int(previous[count])
    while end:
        changes.append(end)
        end = int(previous[end])
    return changes[::-1]


def _moved(seconds: Floats, changes: list[int], size: int) -> list[int]:
    """Return each change moved to the best line within one piece."""
    bounds = [0, *changes, seconds.size]
    moved: list[int] = []
    for first, change, end in zip(bounds[:-2], changes, bounds[2:], strict=True):
        before, after = seconds[first:change].mean(), seconds[change:end].mean()
        start = max(*[first, *moved[-1:]], change - size) + 1
        nearby = seconds[start : min(end - 1, change + size - 1)]
        excess = np.cumsum(np.square(nearby - before) - np.square(nearby - after))
        moved.append(start + int(np.argmin(np.concatenate(([0.0], excess)))))
    return moved


def _level(sums: Floats, first: int, end: int) -> Level:
    return Level(int(first), int(end), float((sums[end] - sums[first]) / (end - first)))
