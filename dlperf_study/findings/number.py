"""A number of a finding with its 95 % confidence interval."""

import math
from dataclasses import dataclass
from typing import Any

from dlperf_study.dataset.cells import bounded_value, is_missing
from dlperf_study.metrics.columns import column_named
from dlperf_study.metrics.statistics import CONFIDENCE, Bounded, Estimate, Interval

#: A share whose upper bound is more times its lower bound has no value worth printing.
MAX_RATIO_OF_BOUNDS = 10.0


@dataclass(frozen=True)
class Number:
    """A value and the bounds of its CI, NaN if unknown; ``decision``: no bound is rounded to it, 1 for a ratio."""

    value: float
    low: float = math.nan
    high: float = math.nan
    decision: float | None = None

    @property
    def is_uncertain(self) -> bool:
        """Whether its CI contains 0, or spans more than a factor of ten."""
        return self.low <= 0 or self.high > MAX_RATIO_OF_BOUNDS * self.low


def from_bounded(value: Bounded, decision: float | None = None) -> Number:
    """Return a value with its bounds, which may be missing."""
    mean, low, high = value
    if low is None or high is None or is_missing(low):
        low = high = math.nan
    return Number(float(mean), float(low), float(high), decision)


def from_column(row: Any, column: str) -> Number:
    """Return a column of a configuration, which has a value."""
    return from_bounded(bounded_value(row, column), column_named(column).neutral)


def share(estimate: Estimate, confidence: float = CONFIDENCE) -> Number:
    """Return a share of a whole."""
    interval: Interval | None = estimate.share_interval(confidence)
    if interval is None:
        return Number(estimate.mean)
    return Number(estimate.mean, interval.low, interval.high)
