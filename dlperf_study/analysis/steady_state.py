"""Is the measured window steady? Tested, not assumed.

The window passes when the medians of its three thirds agree: they may differ by TOLERATED_DRIFT of the
step, or by what the spread of the steps explains (ALLOWED_ERRORS standard errors of a difference of two
medians). The spread is taken within each third, so that a drift doesn't excuse itself, and both are
medians, so that a single slow step decides nothing. Where the window fails, its beginning is cut off
until the rest passes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dlperf_study.analysis.statistics import DEVIATIONS, median_deviation, median_error
from dlperf_study.arrays import Floats, Integers, Mask

# Some lines of a printed series of rates, and the rate of the job in them.


@dataclass(frozen=True)
class RateWindow:
    """Some lines of a series, and their rate.

    ``wall_rate``: samples of the window / its seconds, each line weighted by the steps it stands for: those since the
    line before, and behind a hole as many as usual, since what was lost there had lines of its own.
    ``mean_of_rates``: the arithmetic mean, as DLPerf published it; never below the wall rate.
    ``reasons``: why these lines, in words. ``is_full``: whether the series goes on to the end of the window.
    """

    kept: Mask
    wall_rate: float
    mean_of_rates: float
    reasons: tuple[str, ...]
    is_full: bool = True


def window_of(
    positions: Integers, rates: Floats, kept: Mask, reasons: tuple[str, ...] = (), is_full: bool = True
) -> RateWindow:
    """Return the lines ``kept`` of a series as a window; of none, both rates are NaN."""
    if not kept.any():
        return RateWindow(kept, np.nan, np.nan, reasons, is_full)
    usual = np.median(np.diff(positions)) if positions.size > 1 else 1.0
    weights = np.minimum(np.diff(positions, prepend=positions[0] - usual), usual)[kept]
    wall = float(weights.sum() / (weights / rates[kept]).sum())
    return RateWindow(kept, wall, float(rates[kept].mean()), reasons, is_full)


def fixed_window(steps: Integers, rates: Floats, first_step: int, last_step: int) -> RateWindow:
    """Return the lines of first_step ≤ step < last_step, as DLPerf chose them: 20 to 120, PLSC 50 to 150."""
    kept = (steps >= first_step) & (steps < last_step)
    spacing = np.median(np.abs(np.diff(steps))) if steps.size > 1 else 1
    is_full = bool(steps.size and steps.max() + spacing >= last_step)
    said = "" if is_full else f"; the log ends at step {steps.max() if steps.size else 'none'}, before it is full"
    return window_of(positions_of(steps), rates, kept, (f"steps {first_step} to {last_step - 1}{said}",), is_full)


def positions_of(steps: Integers) -> Integers:
    """Return how many steps lie behind each line; where steps start over, the usual distance is taken."""
    distances = np.diff(steps)
    if (distances > 0).all():
        return steps
    usual = np.median(distances[distances > 0]) if (distances > 0).any() else 1
    distances = np.where(distances > 0, distances, usual).astype(np.int64)
    positions: Integers = np.concatenate((steps[:1], steps[:1] + np.cumsum(distances)))
    return positions


TOLERATED_DRIFT = 0.03
ALLOWED_ERRORS = 3.5
#: Shorter windows say nothing: a third must hold three steps.
MINIMUM_STEPS = 9
#: The beginning is cut off in steps of this share of the window, and at most half of it.
CUTS = 20


def settled_at(step_seconds: Floats) -> int | None:
    """Return the first step from which the window is steady: 0 if all of it is.

    None when less than half of it is steady, or it has fewer than 9 steps.
    """
    count = step_seconds.size
    cuts = sorted({count * cut // CUTS for cut in range(CUTS // 2 + 1)})
    return next((cut for cut in cuts if is_steady(step_seconds[cut:])), None)


def is_steady(step_seconds: Floats) -> bool:
    """Say whether the medians of the three thirds of a window agree."""
    if step_seconds.size < MINIMUM_STEPS:
        return False
    size = step_seconds.size // 3
    thirds = step_seconds[-3 * size :].reshape(3, size)
    medians = np.median(thirds, axis=1)
    drift = np.ptp(medians)
    return bool(drift <= TOLERATED_DRIFT * medians[1] or drift <= _explained(thirds, medians))


def _explained(thirds: Floats, medians: Floats) -> float:
    """Return the largest difference of medians that the spread within the thirds explains.

    Their spread is told as that of normal values is, by the median deviation.
    The smallest deviation of each third is left out: it is (nearly) that of the median from itself, and
    among few steps it would make the spread look much too small.
    """
    deviations = np.sort(np.abs(thirds - medians[:, None]), axis=1)[:, 1:]
    error = median_error(DEVIATIONS * float(np.median(deviations)), thirds.shape[1])
    return float(ALLOWED_ERRORS * np.sqrt(2) * error)


# Stalls in a printed series: slow lines, which families of them come periodically, and what they do to the next line.
#
# All times are seconds per sample, in which a stall adds up.


#: Fewer slow lines have no period, and tell nothing of the lines behind them.
MINIMUM_TICKS = 3
#: Stalls differ in length by less than this factor within a family.
LIKE = 1.5
#: By how much the lines after stalls must differ from the rest at least.
NOTICED = 0.01


@dataclass(frozen=True)
class Stalls:
    """Slow lines of like length. ``period_steps`` is None where they come at no regular distance."""

    lines: Integers
    extra_share: float
    period_steps: float | None


def families(positions: Integers, seconds: Floats, level: Floats, slow: Mask) -> Iterator[Stalls]:
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


def after_stalls(seconds: Floats, slow: Mask, behind: Mask) -> Mask:
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


def _period(positions: Integers, lines: Integers) -> float | None:
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
