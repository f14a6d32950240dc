"""Which part of a printed series of rates is steady: found in the series, and said in words.

Three things make printed rates unlike the rest: the start-up, stalls (validation, checkpoints, a new epoch), and
lines right after a stall. They are looked for in seconds per sample, in which a stall adds up.

1. A line is *slow* when it takes more than its neighbourhood, a running median over NEIGHBOURS lines, by SLOW of it
   and by OUTLYING times the spread of all lines about theirs; *fast* alike.
2. Stalls of like length are a family; one whose lines come at multiples of one period, within one printed line, is
   periodic (``stalls``).
3. The start-up ends at the first SETTLED lines in a row that lie as near the level of the later two thirds as any
   ordinary line does; what drifts beyond that is cut off as in ``steady_state``.
4. Lines right after stalls are left out when, together, they differ from the rest by more than chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dlperf_study.analysis.statistics import DEVIATIONS, median_deviation
from dlperf_study.analysis.steady_state import (
    MINIMUM_STEPS,
    RateWindow,
    Stalls,
    after_stalls,
    families,
    is_steady,
    positions_of,
    settled_at,
    window_of,
)
from dlperf_study.arrays import Floats, Integers, Mask, running_median
from dlperf_study.wording import counted

NEIGHBOURS = 15
SLOW, OUTLYING = 0.05, 6.0
SETTLED = 3
#: A longer beginning, as a share of the lines, is hardly a start-up.
LONG_STARTUP = 0.2


@dataclass(frozen=True)
class Steady:
    """The steady part of a series. ``settled`` is None where there are too few lines to tell."""

    window: RateWindow
    startup: int
    stalls: tuple[Stalls, ...]
    settled: bool | None


def steady_part(steps: Integers, rates: Floats) -> Steady:
    """Return the steady part of rates printed at some steps, in the order of the lines.

    Args:
        steps: the step of each line, increasing or starting over with every epoch; shape (lines,)
        rates: per second, above 0; shape (lines,)

    """
    seconds, positions, lines = 1.0 / rates, positions_of(steps), np.arange(rates.size)
    level = running_median(seconds, NEIGHBOURS)
    slow, fast = _outliers(seconds, level)
    startup = _startup(seconds, ~(slow | fast))
    behind = lines >= startup
    slow, fast = slow & behind, fast & behind
    after = after_stalls(seconds, slow, behind)
    kept = behind & ~(slow | fast | after)
    drift = settled_at(seconds[kept])
    if drift:
        startup = int(np.flatnonzero(kept)[drift])
        slow, fast, after, kept = (some & (lines >= startup) for some in (slow, fast, after, kept))
    stalls = tuple(families(positions, seconds, level, slow))
    settled = None if kept.sum() < MINIMUM_STEPS else drift is not None
    reasons = tuple(_reasons(steps, startup, stalls, fast.sum(), after.sum(), settled))
    return Steady(window_of(positions, rates, kept, reasons), startup, stalls, settled)


def two_levels(steady: Steady, rates: Floats) -> tuple[float, float] | None:
    """Return the two rates of a series whose start-up is no start-up, but a long steady part at another level."""
    if steady.startup < max(LONG_STARTUP * rates.size, MINIMUM_STEPS) or not steady.settled:
        return None
    before = 1.0 / rates[steady.startup // 2 : steady.startup]
    first, second = 1.0 / float(np.median(before)), float(np.median(rates[steady.window.kept]))
    return (first, second) if is_steady(before) and abs(first / second - 1) > SLOW else None


def _outliers(seconds: Floats, level: Floats) -> tuple[Mask, Mask]:
    """Return which lines are slow and which are fast, compared with the level of their neighbourhood."""
    excess = seconds - level
    limit = np.maximum(SLOW * level, OUTLYING * DEVIATIONS * np.median(np.abs(excess)))
    return excess > limit, -excess > limit


def _startup(seconds: Floats, ordinary: Mask) -> int:
    """Return how many lines at the beginning are unlike the level of the rest."""
    late = seconds[seconds.size // 3 :][ordinary[seconds.size // 3 :]]
    if late.size < SETTLED:
        return 0
    level = np.median(late)
    near = np.abs(seconds - level) <= max(SLOW * level, OUTLYING * median_deviation(late))
    runs = np.logical_and.reduce([near[place : near.size - SETTLED + 1 + place] for place in range(SETTLED)])
    return int(np.argmax(runs)) if runs.any() else 0


def _reasons(
    steps: Integers, startup: int, stalls: tuple[Stalls, ...], fast: int, after: int, settled: bool | None
) -> Iterator[str]:
    """Yield, in words, what was left out and why."""
    if startup:
        lines = counted(startup, "line") if startup > 1 else "line"
        yield f"start-up: the first {lines}, up to step {steps[startup - 1]}"
    for family in stalls:
        when = f"every {family.period_steps:.0f} steps" if family.period_steps else "at no regular distance"
        said = f"{counted(family.lines.size, 'line')} {1 + family.extra_share:.2f} times as long as others, {when}"
        yield f"stalls: {said}, the first at step {steps[family.lines[0]]}"
    if after:
        yield f"after a stall: {counted(after, 'line')} unlike the rest"
    if fast:
        yield f"too fast: {counted(fast, 'line')}"
    if settled is None:
        yield "too few lines to tell whether the rest is steady"
    elif not settled:
        yield "the rest drifts: no part of it is steady"
