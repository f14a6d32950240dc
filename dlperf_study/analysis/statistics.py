"""Intervals over runs, and their coverage.

Follows Hoefler and Belli, "Scientific benchmarking of parallel computing systems" (SC'15), and Kalibera
and Jones, "Quantifying performance changes with effect size confidence intervals" (2012) for ratios.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dlperf_study.arrays import Floats, Integers

CONFIDENCE = 0.95
MINIMUM_RUNS = 3
RESAMPLES = 4000
#: Of normal data: standard deviation / median absolute deviation, and standard error of a median / that of a mean.
DEVIATIONS, MEDIAN_ERROR = 1.4826, 1.2533

Values = Sequence[float] | Floats


@dataclass(frozen=True)
class Interval:
    """Two bounds, and the best chance that they hold the true value."""

    low: float
    high: float
    coverage: float


def interval_columns(name: str, interval: Interval | None) -> dict[str, float]:
    """Return the bounds as the columns of a value hold them, ``<name>_low`` and ``<name>_high``; none without one."""
    return {f"{name}_low": interval.low, f"{name}_high": interval.high} if interval else {}


def coverage(runs: int) -> float | None:
    """Return the best chance that an interval of the median over that many runs holds the true median.

    All runs fall on one side of the median with chance 2^(1−n), so not even their whole range covers it
    more often than 1 − 2^(1−n) unless a distribution is assumed: 75 % for three runs. None below 3 runs.
    """
    return min(CONFIDENCE, 1 - 2.0 ** (1 - runs)) if runs >= MINIMUM_RUNS else None


def median_interval(values: Values) -> Interval | None:
    """Return the percentile-bootstrap interval of the median over runs, or None below 3 runs."""
    covered = coverage(len(values))
    return _interval(_resampled_medians(values), covered) if covered else None


def ratio_interval(numerators: Values, denominators: Values) -> Interval | None:
    """Return the interval of median(numerators) / median(denominators), the runs of both resampled.

    None when either has fewer than 3 runs. Numerators and denominators must be different runs: the ratio
    of a configuration to itself is 1 and has no interval to estimate.
    """
    return _interval_of_two(np.divide, numerators, denominators)


def difference_interval(minuends: Values, subtrahends: Values) -> Interval | None:
    """Return the interval of median(minuends) − median(subtrahends), the runs of both resampled.

    None when either has fewer than 3 runs. As for a ratio, they must be different runs.
    """
    return _interval_of_two(np.subtract, minuends, subtrahends)


def distinguishable(a: Interval | None, b: Interval | None) -> bool:
    """Return whether two values may be ranked: both have an interval, and the intervals are disjoint."""
    return a is not None and b is not None and (a.high < b.low or b.high < a.low)


def median_deviation(values: Floats) -> float:
    """Return the scaled median absolute deviation: the standard deviation of normal data, robust to outliers."""
    return float(DEVIATIONS * np.median(np.abs(values - np.median(values))))


def median_error(deviation: float, count: int) -> float:
    """Return the standard error of the median of ``count`` values with that standard deviation."""
    return MEDIAN_ERROR * deviation / float(np.sqrt(count))


def _interval_of_two(combine: Callable[[Floats, Floats], Floats], a: Values, b: Values) -> Interval | None:
    covered = coverage(min(len(a), len(b)))
    if not covered:
        return None
    return _interval(combine(_resampled_medians(a), _resampled_medians(b, seed=1)), covered)


def _interval(estimates: Floats, covered: float) -> Interval:
    low, high = np.quantile(estimates, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high), covered)


def _resampled_medians(values: Values, seed: int = 0) -> Floats:
    """Return the medians of RESAMPLES draws with replacement; those of two seeds are independent of each other."""
    draws: Floats = np.median(np.asarray(values, dtype=np.float64)[_draws(len(values), seed)], axis=1)
    return draws


@cache
def _draws(runs: int, seed: int) -> Integers:
    """Return indices [RESAMPLES, runs]; the same for every configuration with as many runs."""
    return np.random.default_rng([seed, runs]).integers(0, runs, size=(RESAMPLES, runs))
