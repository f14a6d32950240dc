"""How often the interval of a mean of positive values holds the true mean, by simulation.

The interval on the logarithmic scale must not hold it less often than the one that reaches below 0.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.metrics.statistics import CONFIDENCE, Estimate, Interval

RUNS, SPREADS = (3, 6, 10), (0.02, 0.1, 0.3, 0.6)
#: Standard errors of a simulated share that are chance.
ERRORS = 3.0


def log_normal(generator: np.random.Generator, spread: float, shape: tuple[int, int]) -> Floats:
    """Return positive values with the mean 1, whose logarithms have the standard deviation ``spread``."""
    values: Floats = np.exp(generator.normal(-(spread**2) / 2, spread, shape))
    return values


def normal(generator: np.random.Generator, spread: float, shape: tuple[int, int]) -> Floats:
    """Return values with the mean 1 and the standard deviation ``spread``, of rows without one below 0."""
    values = generator.normal(1.0, spread, shape)
    return values[(values > 0).all(axis=1)]


def holds_truth(values: Floats, interval_of: Callable[[Estimate], Interval | None]) -> tuple[float, float]:
    """Return the share of rows of ``values`` [configurations, runs] whose interval holds 1, and is partly below 0."""
    bounds = []
    for runs in values:
        interval = interval_of(Estimate.from_values(runs))
        if interval is not None:
            bounds.append((interval.low, interval.high))
    low, high = np.array(bounds).T
    return float(np.mean((low <= 1) & (high >= 1))), float(np.mean(low < 0))


def rows(configurations: int) -> Iterator[tuple[str, float]]:
    """Yield the lines of the table, each with by how much the second interval holds the truth more often."""
    generator = np.random.default_rng(0)
    for name, draw in (("log-normal", log_normal), ("normal", normal)):
        for spread in SPREADS:
            # A normal distribution with a larger spread has values below 0, which no time has.
            for runs in RUNS if draw is log_normal or spread < 1 / 3 else ():
                values = draw(generator, spread, (configurations, runs))
                plain, below = holds_truth(values, Estimate.interval)
                logarithmic, _ = holds_truth(values, Estimate.positive_interval)
                cells = (f"{100 * share:.1f} %" for share in (plain, below, logarithmic))
                yield f"| {name}, {100 * spread:g} % | {runs} | {' | '.join(cells)} |", logarithmic - plain


def chance(configurations: int) -> float:
    """Return by how much the share of so many configurations may differ by chance."""
    return ERRORS * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / configurations)
