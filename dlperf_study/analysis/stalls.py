"""Stalls in a printed series: slow lines, which families of them come periodically, and what they do to the next line.

All times are seconds per sample, in which a stall adds up.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dlperf_study.analysis.statistics import median_deviation, median_error
from dlperf_study.analysis.steady_state import ALLOWED_ERRORS, MINIMUM_STEPS
from dlperf_study.logs.arrays import Mask, Real, Whole

#: Fewer slow lines have no period, and tell nothing of the lines behind them.
MINIMUM_TICKS = 3
#: Stalls differ in length by less than this factor within a family.
LIKE = 1.5
#: By how much the lines after stalls must differ from the rest at least.
NOTICED = 0.01


@dataclass(frozen=True)
class Stalls:
    """Slow lines of like length. ``period_steps`` is None where they come at no regular distance."""

    lines: Whole
    extra_share: float
    period_steps: float | None


def families(positions: Whole, seconds: Real, level: Real, slow: Mask) -> Iterator[Stalls]:
    """Yield the slow lines in families of like length, the longest first; ``level``: what is usual around each line."""
    lines = np.flatnonzero(slow)
    if not lines.size:
        return
    with np.errstate(over="ignore"):
        extra = (seconds[lines] - level[lines]) / np.median(seconds[~slow])
    order = np.argsort(-extra, kind="stable")
    breaks = np.flatnonzero(extra[order][:-1] > LIKE * extra[order][1:]) + 1
    for family in np.split(order, breaks):
        members = np.sort(lines[family])
        yield Stalls(members, float(np.median(extra[family])), _period(positions, members))


def after_stalls(seconds: Real, slow: Mask, behind: Mask) -> Mask:
    """Return the lines right after stalls if, together, they differ from the rest by more than chance.

    ``behind``: the lines behind the start-up, which alone are looked at.
    """
    after = np.concatenate(([False], slow[:-1])) & ~slow & behind
    rest = behind & ~(slow | after)
    if after.sum() < MINIMUM_TICKS or rest.sum() < MINIMUM_STEPS:
        return np.zeros_like(after)
    level = np.median(seconds[rest])
    chance = ALLOWED_ERRORS * median_error(median_deviation(seconds[rest]), int(after.sum()))
    differs = abs(np.median(seconds[after]) - level) > max(chance, NOTICED * level)
    return after if differs else np.zeros_like(after)


def _period(positions: Whole, lines: Whole) -> float | None:
    """Return the distance in steps at which lines come, some perhaps missing; None where they come irregularly.

    What stalled a line happened anywhere since the line before, so that distances vary by one line.
    """
    if lines.size < MINIMUM_TICKS:
        return None
    spacing = float(np.median(np.diff(positions)))
    distances = np.diff(positions[lines])
    ticks = np.maximum(1, np.round(distances / np.median(distances)))
    period = float(distances.sum() / ticks.sum())
    regular = np.abs(distances - ticks * period) <= spacing
    return period if period > spacing and regular.all() else None
