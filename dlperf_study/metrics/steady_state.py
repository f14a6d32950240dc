"""Steady-state test of a window: yes, no, or inconclusive.

Three differences of means are examined, in shares of the mean step: first half and second half, first quarter and rest,
last quarter and rest. The window is

* *steady* if each difference + EQUIVALENT standard errors is at most the tolerance: equivalence is shown;
* *not steady* if one difference − DIFFERENT standard errors is above the tolerance;
* otherwise *inconclusive*, with the number of further steps that would tell.

Noise therefore never makes a window steady. The standard error takes autocorrelation into account, as a first-order
autoregressive process: variance and correlation come from differences of steps one and two apart, which a drift and a
change of level hardly enter. Single slow steps decide nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dlperf_study.core.arrays import Floats, median, running_median
from dlperf_study.core.errors import Diagnostic
from dlperf_study.metrics import metric
from dlperf_study.metrics.statistics import DEVIATIONS

#: By how much the parts of a window may differ where no precision is claimed.
TOLERANCE = 0.05
#: Standard errors: one-sided 95 % for equivalence; three comparisons, few steps, for a difference.
EQUIVALENT, DIFFERENT = 1.7, 3.0
#: Equivalence of steps without any difference is shown with a chance of 80 % at this many standard errors.
SHOWN = EQUIVALENT + 1.3
#: Shorter windows say nothing about the noise of their steps; a window should have ENOUGH_STEPS.
MINIMUM_STEPS, ENOUGH_STEPS = 9, 50
#: One of so many steps, at least one, is replaced by its neighbourhood if it exceeds it by OUTLYING deviations.
STEPS_PER_SLOW_ONE, NEIGHBOURS, OUTLYING = 25, 5, 6.0
#: Differences of steps count up to so many deviations: the one at a change of level is no noise.
CLIPPED = 4.0
#: Correlation of neighbouring steps beyond which an estimate is of a drift, and not of noise.
LARGEST_CORRELATION = 0.9
#: Longer windows are tested by the means of as many successive pieces at most.
MOST_PIECES = 2048
#: The beginning is cut off in this many pieces of the window, up to half of it.
CUTS = 20


def steadiness_tolerance(precision: float | None) -> float:
    """Return the tolerance of steadiness, as a share of a step.

    A study with a coarser ``precision``, or none, does not get a wider tolerance.
    """
    return min(precision or TOLERANCE, TOLERANCE)


class Answer(StrEnum):
    """Whether a window is steady."""

    STEADY = "steady"
    NOT_STEADY = "not steady"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Steadiness:
    """Whether a window is steady, and how many further steps help.

    ``difference``: the largest of the three, a share of the mean step; NaN with fewer than MINIMUM_STEPS.
    ``further_steps``: how many more would tell; 0 if it is steady, None if more are no help.
    """

    answer: Answer
    difference: float
    further_steps: int | None

    @property
    def is_steady(self) -> bool:
        """Whether equivalence is shown."""
        return self.answer is Answer.STEADY


def steadiness(step_seconds: Floats, tolerance: float = TOLERANCE) -> Steadiness:
    """Return whether the steps of a window are steady."""
    if step_seconds.size >= MINIMUM_STEPS:
        step_seconds = _replace_single_slow_steps(step_seconds)
    return steadiness_of_usual(step_seconds, tolerance)


def steadiness_of_usual(step_seconds: Floats, tolerance: float = TOLERANCE) -> Steadiness:
    """Return ``steadiness`` for steps without slow ones."""
    if step_seconds.size < MINIMUM_STEPS:
        return Steadiness(Answer.INCONCLUSIVE, np.nan, ENOUGH_STEPS - step_seconds.size)
    size, values = step_seconds.size // MOST_PIECES, step_seconds
    if size > 1:
        values = step_seconds[step_seconds.size % size :].reshape(-1, size).mean(axis=1)
    deviation, correlation = noise(values)
    mean = values.mean()
    differences, errors = _differences(values / mean)
    errors *= deviation / mean * mean_error_factor(correlation)
    largest = float(differences.max())
    if (differences + EQUIVALENT * errors <= tolerance).all():
        return Steadiness(Answer.STEADY, largest, 0)
    if (differences - DIFFERENT * errors > tolerance).any():
        return Steadiness(Answer.NOT_STEADY, largest, None)
    return Steadiness(Answer.INCONCLUSIVE, largest, _further_steps(step_seconds.size, errors.max() / tolerance))


def settled_at(step_seconds: Floats, tolerance: float = TOLERANCE) -> int | None:
    """Return the first steady step; None beyond half of the window."""
    count = step_seconds.size
    for piece in range(CUTS // 2 + 1):
        cut = count * piece // CUTS
        if steadiness(step_seconds[cut:], tolerance).is_steady:
            return cut
    return None


def noise(values: Floats) -> tuple[float, float]:
    """Return standard deviation and lag-1 correlation of a series' noise.

    For a first-order autoregressive process the variance of differences of values k apart is 2 σ² (1 − ρᵏ).
    """
    next_variance, second_variance = _variance(np.diff(values)), _variance(values[2:] - values[:-2])
    if not next_variance:
        return 0.0, 0.0
    correlation = min(max(second_variance / next_variance - 1, 0.0), LARGEST_CORRELATION)
    return math.sqrt(next_variance / (2 * (1 - correlation))), correlation


def mean_error_factor(correlation: float) -> float:
    """Return the factor of correlation on the error of a mean."""
    return math.sqrt((1 + correlation) / (1 - correlation))


def _differences(values: Floats) -> tuple[Floats, Floats]:
    """Return three differences of means, and their errors for unit noise."""
    count, quarter, half = values.size, values.size // 4, values.size // 2
    sums = np.concatenate(([0.0], np.cumsum(values)))
    first = np.array([sums[half], sums[quarter], sums[count - quarter]])
    sizes = np.array([half, quarter, count - quarter])
    others = count - sizes
    return np.abs(first / sizes - (sums[-1] - first) / others), np.sqrt(1 / sizes + 1 / others)


def _further_steps(steps: int, error: float) -> int:
    """Return how many more steps would probably show steadiness.

    At least as many again. ``error``: the standard error in tolerances, which falls with the square root of the steps.
    Two digits are given.
    """
    further = max(steps * (SHOWN * error) ** 2 - steps, steps, ENOUGH_STEPS - steps)
    unit = 10.0 ** (int(np.log10(further)) - 1)
    return int(np.ceil(further / unit) * unit)


def _replace_single_slow_steps(step_seconds: Floats) -> Floats:
    """Replace single slow steps by their neighbours."""
    level = running_median(step_seconds, NEIGHBOURS)
    excess = step_seconds - level
    slow = np.flatnonzero(excess > OUTLYING * DEVIATIONS * np.median(np.abs(excess)))
    most = max(1, step_seconds.size // STEPS_PER_SLOW_ONE)
    slow = slow[np.argsort(-excess[slow], kind="stable")[:most]]
    usual = step_seconds.copy()
    usual[slow] = level[slow]
    return usual


def _variance(differences: Floats) -> float:
    """Return the variance around the median, with clipped outliers."""
    deviations = differences - median(differences)
    limit = CLIPPED * DEVIATIONS * median(np.abs(deviations))
    return float(np.square(np.minimum(np.abs(deviations), limit)).mean())


@dataclass(frozen=True)
class WindowSteadiness:
    """Steadiness of a window, and its first steady step."""

    steadiness: Steadiness
    settled_at_step: int | None
    steps: int

    @classmethod
    def from_steps(cls, step_seconds: Floats, tolerance: float = TOLERANCE) -> "WindowSteadiness":
        """Test the steps of a window; ``tolerance``: see ``steadiness``."""
        result = steadiness(step_seconds, tolerance)
        return cls(result, 0 if result.is_steady else settled_at(step_seconds, tolerance), step_seconds.size)


def unsteady(window: WindowSteadiness) -> Iterator[Diagnostic]:
    """The measured window is not steady."""
    result, settled = window.steadiness, window.settled_at_step
    if result.answer is not Answer.NOT_STEADY:
        return
    message = f"parts of the window differ by {100 * result.difference:.0f} % of a step"
    if settled is None:
        message += ", and its second half is not shown to be steady either"
        yield Diagnostic("steadiness", f"{message}: the cause may be background load or a limited clock")
    else:
        remedy = f"it is steady only from step {settled} of {window.steps} on: use a longer warm-up"
        yield Diagnostic("steadiness", f"{message}; {remedy}")


def _answer(window: WindowSteadiness) -> str | None:
    if window.steadiness.answer is Answer.INCONCLUSIVE:
        return None
    return str(window.steadiness.answer)


METRICS = (
    metric.text(
        "steadiness",
        "Steadiness",
        "steady: both halves, and the outer quarters against the rest, differ by at most 5 % (or a smaller "
        "target CI); not steady: by more; missing: inconclusive",
        metric.R,
        value=_answer,
        source=metric.Source.STEADINESS,
        missing_of_run="its steps are too few, or vary too much, to tell",
        pages=metric.THROUGHPUT_PAGES,
        diagnose=unsteady,
    ),
    metric.whole_number(
        "settled_at_step",
        "Settled at step",
        "first measured step of the steady part; ingested logs: counted from the start",
        metric.R,
        value=lambda window: window.settled_at_step,
        source=metric.Source.STEADINESS,
    ),
)
