"""Which part of a printed series of rates is steady: found in the series, and said in words.

Three things make printed rates unlike the rest: the start-up, stalls (validation, checkpoints, a new epoch), and
lines right after a stall. They are looked for in seconds per sample, in which a stall adds up.

1. A line is *slow* when it takes more than its neighbourhood, a running median over NEIGHBOURS lines, by SLOW of it
   and by OUTLYING times the spread of all lines about theirs (1.4826 × the median deviation); *fast* alike.
2. Stalls of like length are a family; a family of at least MINIMUM_TICKS that come at multiples of one period,
   within one printed line, is periodic.
3. The start-up ends at the first SETTLED lines in a row that lie as near the level of the later two thirds as any
   ordinary line does; what drifts beyond that is cut off as in ``steady_state``.
4. Lines right after stalls are left out when, together, they differ from the rest by more than chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dlperf_study.analysis.steady_state import MINIMUM_STEPS, is_steady, settled_at
from dlperf_study.logs.arrays import Mask, Real, Whole
from dlperf_study.logs.running import running_median
from dlperf_study.study.words import counted

NEIGHBOURS = 15
SLOW, OUTLYING = 0.05, 6.0
MINIMUM_TICKS = 3
SETTLED = 3
#: A longer beginning, as a share of the lines, is hardly a start-up.
LONG_STARTUP = 0.2
#: Stalls differ in length by less than this factor within a family.
LIKE = 1.5
#: How many standard errors the lines after stalls may differ from the rest, and by how much at least.
ALLOWED_ERRORS, NOTICED = 3.5, 0.01


@dataclass(frozen=True)
class Stalls:
    """Slow lines of like length. ``period_steps`` is None where they come at no regular distance."""

    lines: Whole
    extra_share: float
    period_steps: float | None


@dataclass(frozen=True)
class Window:
    """Some lines of a series, and their rate.

    ``wall_rate``: samples of the window / its seconds, each line weighted by the steps it stands for: those since the
    line before, and behind a hole as many as usual, since what was lost there had lines of its own.
    ``mean_of_rates``: the arithmetic mean, as DLPerf published it; never below the wall rate.
    """

    kept: Mask
    wall_rate: float
    mean_of_rates: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Steady:
    """The steady part of a series. ``settled`` is None where there are too few lines to tell."""

    window: Window
    startup: int
    stalls: tuple[Stalls, ...]
    settled: bool | None


def steady_part(steps: Whole, rates: Real) -> Steady:
    """Return the steady part of rates printed at some steps, in the order of the lines.

    Args:
        steps: the step of each line, increasing or starting over with every epoch; shape (lines,)
        rates: per second, above 0; shape (lines,)

    """
    seconds, positions = 1.0 / rates, positions_of(steps)
    level = running_median(seconds, NEIGHBOURS)
    slow, fast = outliers(seconds, level)
    startup = _startup(seconds, ~(slow | fast))
    slow[:startup] = fast[:startup] = False
    after = _after_stalls(seconds, slow, startup)
    kept = ~(slow | fast | after)
    kept[:startup] = False
    drift = settled_at(seconds[kept])
    if drift:
        startup = int(np.flatnonzero(kept)[drift])
        slow[:startup] = kept[:startup] = after[:startup] = False
    stalls = tuple(_families(positions, seconds, level, slow))
    settled = None if kept.sum() < MINIMUM_STEPS else drift is not None
    reasons = tuple(_reasons(steps, startup, stalls, fast[startup:].sum(), after.sum(), settled))
    return Steady(_window(positions, rates, kept, reasons), startup, stalls, settled)


def two_levels(steady: Steady, rates: Real) -> tuple[float, float] | None:
    """Return the two rates of a series whose start-up is no start-up, but a long steady part at another level."""
    if steady.startup < max(LONG_STARTUP * rates.size, MINIMUM_STEPS) or not steady.settled:
        return None
    before = 1.0 / rates[steady.startup // 2 : steady.startup]
    first, second = 1.0 / float(np.median(before)), float(np.median(rates[steady.window.kept]))
    return (first, second) if is_steady(before) and abs(first / second - 1) > SLOW else None


def fixed_window(steps: Whole, rates: Real, first_step: int, last_step: int) -> Window:
    """Return the lines of first_step ≤ step < last_step, as DLPerf chose them: 20 to 120, PLSC 50 to 150."""
    kept = (steps >= first_step) & (steps < last_step)
    spacing = np.median(np.abs(np.diff(steps))) if steps.size > 1 else 1
    reached = steps.size > 0 and steps.max() + spacing >= last_step
    said = "" if reached else f"; the log ends at step {steps.max() if steps.size else 'none'}, before it is full"
    return _window(positions_of(steps), rates, kept, (f"steps {first_step} to {last_step - 1}{said}",))


def positions_of(steps: Whole) -> Whole:
    """Return how many steps lie behind each line; where steps start over, the usual distance is taken."""
    distances = np.diff(steps)
    if (distances > 0).all():
        return steps
    usual = np.median(distances[distances > 0]) if (distances > 0).any() else 1
    distances = np.where(distances > 0, distances, usual).astype(np.int64)
    positions: Whole = np.concatenate((steps[:1], steps[:1] + np.cumsum(distances)))
    return positions


def outliers(seconds: Real, level: Real) -> tuple[Mask, Mask]:
    """Return which lines are slow and which are fast, compared with the level of their neighbourhood."""
    excess = seconds - level
    limit = np.maximum(SLOW * level, OUTLYING * 1.4826 * np.median(np.abs(excess)))
    return excess > limit, -excess > limit


def _startup(seconds: Real, ordinary: Mask) -> int:
    """Return how many lines at the beginning are unlike the level of the rest."""
    late = seconds[seconds.size // 3 :][ordinary[seconds.size // 3 :]]
    if late.size < SETTLED:
        return 0
    level = np.median(late)
    spread = OUTLYING * 1.4826 * np.median(np.abs(late - level))
    near = np.abs(seconds - level) <= max(SLOW * level, spread)
    runs = np.logical_and.reduce([near[place : near.size - SETTLED + 1 + place] for place in range(SETTLED)])
    return int(np.argmax(runs)) if runs.any() else 0


def _after_stalls(seconds: Real, slow: Mask, startup: int) -> Mask:
    """Return the lines right after stalls if, together, they differ from the rest by more than chance."""
    after = np.concatenate(([False], slow[:-1])) & ~slow
    after[:startup] = False
    rest = ~(slow | after)
    rest[:startup] = False
    if after.sum() < MINIMUM_TICKS or rest.sum() < MINIMUM_STEPS:
        return np.zeros_like(after)
    level = np.median(seconds[rest])
    spread = 1.4826 * np.median(np.abs(seconds[rest] - level))
    chance = ALLOWED_ERRORS * 1.2533 * spread / np.sqrt(after.sum())
    differs = abs(np.median(seconds[after]) - level) > max(chance, NOTICED * level)
    return after if differs else np.zeros_like(after)


def _families(positions: Whole, seconds: Real, level: Real, slow: Mask) -> Iterator[Stalls]:
    """Yield the stalls in families of like length, the longest first."""
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


def _window(positions: Whole, rates: Real, kept: Mask, reasons: tuple[str, ...]) -> Window:
    if not kept.any():
        return Window(kept, np.nan, np.nan, reasons)
    usual = np.median(np.diff(positions)) if positions.size > 1 else 1.0
    weights = np.minimum(np.diff(positions, prepend=positions[0] - usual), usual)[kept]
    wall = float(weights.sum() / (weights / rates[kept]).sum())
    return Window(kept, wall, float(rates[kept].mean()), reasons)


def _reasons(
    steps: Whole, startup: int, stalls: tuple[Stalls, ...], fast: int, after: int, settled: bool | None
) -> Iterator[str]:
    """Yield, in words, what was left out and why."""
    if startup:
        yield f"start-up: the first {counted(startup, 'line')}, up to step {steps[startup - 1]}"
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
