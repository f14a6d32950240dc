"""Some lines of a printed series of rates, and the rate of the job in them."""

from dataclasses import dataclass

import numpy as np

from dlperf_study.logs.arrays import Mask, Real, Whole


@dataclass(frozen=True)
class Window:
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


def window_of(positions: Whole, rates: Real, kept: Mask, reasons: tuple[str, ...] = (), is_full: bool = True) -> Window:
    """Return the lines ``kept`` of a series as a window; of none, both rates are NaN."""
    if not kept.any():
        return Window(kept, np.nan, np.nan, reasons, is_full)
    usual = np.median(np.diff(positions)) if positions.size > 1 else 1.0
    weights = np.minimum(np.diff(positions, prepend=positions[0] - usual), usual)[kept]
    wall = float(weights.sum() / (weights / rates[kept]).sum())
    return Window(kept, wall, float(rates[kept].mean()), reasons, is_full)


def fixed_window(steps: Whole, rates: Real, first_step: int, last_step: int) -> Window:
    """Return the lines of first_step ≤ step < last_step, as DLPerf chose them: 20 to 120, PLSC 50 to 150."""
    kept = (steps >= first_step) & (steps < last_step)
    spacing = np.median(np.abs(np.diff(steps))) if steps.size > 1 else 1
    is_full = bool(steps.size and steps.max() + spacing >= last_step)
    said = "" if is_full else f"; the log ends at step {steps.max() if steps.size else 'none'}, before it is full"
    return window_of(positions_of(steps), rates, kept, (f"steps {first_step} to {last_step - 1}{said}",), is_full)


def positions_of(steps: Whole) -> Whole:
    """Return how many steps lie behind each line; where steps start over, the usual distance is taken."""
    distances = np.diff(steps)
    if (distances > 0).all():
        return steps
    usual = np.median(distances[distances > 0]) if (distances > 0).any() else 1
    distances = np.where(distances > 0, distances, usual).astype(np.int64)
    positions: Whole = np.concatenate((steps[:1], steps[:1] + np.cumsum(distances)))
    return positions
