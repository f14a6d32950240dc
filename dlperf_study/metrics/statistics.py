"""Estimates over runs with their t intervals, and what may be said of the ratio or the difference of two.

A run is one value; the steps of a run are none, because they resemble each other more than runs do. Rates and ratios
are estimated on their natural logarithms, times and other signed quantities as they are. Sources: Hoefler and Belli,
"Scientific benchmarking of parallel computing systems" (SC'15); Welch, "The generalization of Student's problem when
several different population variances are involved" (1947); Holm, "A simple sequentially rejective multiple test
procedure" (1979); Schuirmann, "A comparison of the two one-sided tests procedure" (1987); Fieller, "Some problems in
interval estimation" (1954).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from dlperf_study.core.arrays import Floats, Mask
from dlperf_study.metrics.no_interval import NoInterval

CONFIDENCE = 0.95
#: Fewer runs have no interval.
MINIMUM_RUNS = 3
#: Degrees of freedom of an interval that was printed without its number of runs: those of a normal distribution.
MANY = 1e6
#: Values closer than this, and than this share of their size, are equal: arithmetic alone sets them apart.
EQUALITY = 1e-12
#: Standard deviation of a rounding error, in units of the last digit: that of a uniform distribution.
ROUNDING_DEVIATION = 1 / math.sqrt(12)
#: Of normal data: standard deviation / median absolute deviation, and standard error of a median / that of a mean.
DEVIATIONS, MEDIAN_ERROR = 1.4826, 1.2533

Values = Sequence[float] | Floats


#: A value and the bounds of its interval; both bounds are missing where it has none.
Bounded = tuple[float, float | None, float | None]


@dataclass(frozen=True)
class Interval:
    """The two bounds of a 95 % interval."""

    low: float
    high: float

    @property
    def exponential(self) -> "Interval":
        """The interval of a rate or a ratio, from that of its logarithm."""
        with np.errstate(over="ignore"):
            return Interval(float(np.exp(self.low)), float(np.exp(self.high)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs, its standard error and its degrees of freedom; without an error nothing is known but the mean.

    An error of 0 is that of what is exact by definition. That of a rate or a ratio is the mean of logarithms:
    ``factor`` and ``factor_interval`` are what it is of. ``reason``: why runs give no error.
    """

    mean: float
    error: float | None = None
    freedom: float = MANY
    reason: NoInterval | None = field(default=None, compare=False)

    @classmethod
    def of(cls, values: Values, resolution: float = 0.0) -> "Estimate":
        """Return the mean of at least one value; below 3 values it has no error. The variance is their own.

        ``resolution``: one unit of the last digit of values that were printed, 0 where it is unknown. Values near each
        other are rounded alike, so their mean is at least as uncertain as one of them. Equal values without a
        resolution have no error: by how much they differed before they were rounded can't be told.
        """
        runs = np.asarray(values, dtype=np.float64)
        mean, count = float(runs.mean()), runs.size
        if count < MINIMUM_RUNS:
            return cls(mean, reason=NoInterval.FEW_VALUES)
        deviation = 0.0 if are_equal(runs) else float(runs.std(ddof=1))
        error = max(deviation / math.sqrt(count), resolution * ROUNDING_DEVIATION)
        return cls(mean, error, count - 1) if error else cls(mean, reason=NoInterval.EQUAL_VALUES)

    @classmethod
    def of_later_half(cls, values: Values, later: Values | None = None) -> "Estimate":
        """Return the mean of all values with the error that the later half of them tells.

        Of values of which the first half decided when to stop: they may be near each other by chance, and then tell an
        error that is too small. The mean of normal values is independent of their deviation, so that of all is used.
        ``later``: the values of the later half of the runs, where some runs have none.
        """
        runs = np.asarray(values, dtype=np.float64)
        later = later_half(runs) if later is None else np.asarray(later, dtype=np.float64)
        # None at all is there of what is measured in the first rounds only.
        estimate, mean = cls.of(later) if later.size else None, float(runs.mean())
        if estimate is None or estimate.error is None:
            return cls(mean, reason=estimate.reason if estimate else NoInterval.FEW_VALUES)
        return cls(mean, estimate.error * math.sqrt(later.size / runs.size), estimate.freedom)

    @classmethod
    def of_printed(
        cls, value: float, low: float, high: float, runs: int | None = None, resolution: float = 0.0
    ) -> "Estimate":
        """Return the estimate of the logarithm of a rate, from its printed 95 % interval and its number of runs.

        ``resolution``: one unit of the last digit of the rate / the rate, 0 where it is unknown. Bounds that are equal
        were rounded alike, as values are.
        """
        freedom = runs - 1 if runs and runs >= MINIMUM_RUNS else MANY
        half_width = math.log(high / low) / 2
        error = max(half_width / t_quantile((1 + CONFIDENCE) / 2, freedom), resolution * ROUNDING_DEVIATION)
        return cls(math.log(value), error, freedom) if error else cls(math.log(value))

    @property
    def factor(self) -> float:
        """The rate or ratio of which this is the logarithm."""
        return math.exp(self.mean)

    def interval(self, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the t interval of the mean, or None without an error."""
        if self.error is None:
            return None
        half_width = self.error * t_quantile((1 + confidence) / 2, self.freedom)
        return Interval(self.mean - half_width, self.mean + half_width)

    def positive_interval(self, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the interval of the mean of positive values, whose lower bound is positive too; None without an error.

        The t interval of the logarithm of the mean, whose standard error is error / mean by the delta method. The mean
        stays arithmetic, so that means of parts add up to that of the whole.
        """
        if self.error is None or self.mean <= 0:
            return self.interval(confidence)
        logarithm = Estimate(math.log(self.mean), self.error / self.mean, self.freedom).interval(confidence)
        return logarithm.exponential if logarithm else None

    def share_interval(self, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the interval of the mean of shares of a whole, which is at most 1; None without an error.

        What the shares leave of the whole is positive. A share that is a difference may be negative.
        """
        rest = Estimate(1 - self.mean, self.error, self.freedom).positive_interval(confidence)
        return Interval(1 - rest.high, 1 - rest.low) if rest else None

    def factor_interval(self) -> Interval | None:
        """Return the interval of the rate or ratio of which this is the logarithm, or None without an error."""
        interval = self.interval()
        return interval.exponential if interval else None

    @property
    def bounded(self) -> Bounded:
        """The mean with its interval."""
        return bounded(self.mean, self.interval())

    @property
    def bounded_factor(self) -> Bounded:
        """The rate or ratio of which this is the logarithm, with its interval."""
        return bounded(self.factor, self.factor_interval())

    def p_value(self, null: float = 0.0) -> float | None:
        """Return the two-sided p-value of a mean of ``null`` in a t test; None without an error and if it is exact."""
        if not self.error:
            return None
        return 2.0 * t_probability(-abs(self.mean - null) / self.error, self.freedom)

    def minus(self, other: "Estimate") -> "Estimate":
        """Return the difference of two independent means, with the degrees of freedom of Welch and Satterthwaite."""
        mean = self.mean - other.mean
        if self.error is None or other.error is None:
            return Estimate(mean, reason=self.reason or other.reason)
        first, second = self.error**2, other.error**2
        weights = first**2 / self.freedom + second**2 / other.freedom
        freedom = (first + second) ** 2 / weights if weights else min(self.freedom, other.freedom)
        return Estimate(mean, math.sqrt(first + second), freedom)


class Paced(Protocol):
    """How the rates of a configuration compare with those of others of its study at one pace of the machine."""

    def log_ratios(self, other: Any) -> Floats | None:
        """Return the logarithm of their ratio at one pace, by common round in order; None where that can't be told."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of each run of one configuration, and the round in which it was measured.

    ``rounds`` [runs]: NaN for a run that was in no round. None: the runs are independent of all others, as those of
    foreign logs and of publications are. ``resolution``: one unit of the last digit of printed values, else 0.
    ``goal``: of rates that are measured until they are precise, the half-width of the interval of a logarithm that ends
    it; None if the runs did not decide that. ``has_ended``: rates of the same runs did; ``run_rounds``: the rounds of
    all of these, where some may have no value. ``pace``: that of the machine.
    """

    values: Floats
    rounds: Floats | None = None
    resolution: float = 0.0
    goal: float | None = None
    has_ended: bool = False
    run_rounds: Floats | None = None
    pace: Paced | None = None

    @property
    def logarithms(self) -> "Sample":
        """The same runs with the logarithms of their values."""
        return replace(self, values=np.log(self.values), resolution=self.resolution / float(self.values.mean()))

    @property
    def in_order(self) -> Floats:
        """The values in the order of their rounds, those of no round last."""
        return self.values if self.rounds is None else self.values[np.argsort(self.rounds, kind="stable")]

    @property
    def estimate(self) -> Estimate:
        """The mean of the values."""
        return self._estimate(self.in_order, self.resolution, is_later=self._are_later)

    def within_rounds(self, other: "Sample") -> Floats:
        """Return the differences within the rounds that both have a run in, in order of the rounds."""
        if self.rounds is None or other.rounds is None:
            return np.empty(0)
        _, positions, other_positions = np.intersect1d(self.rounds, other.rounds, return_indices=True)
        differences: Floats = self.values[positions] - other.values[other_positions]
        return differences

    @property
    def ended_measuring(self) -> bool:
        """Whether these rates became precise enough to end measuring."""
        return self.goal is not None and is_precise(np.log(self.in_order), self.goal)

    def _estimate(
        self,
        values: Floats,
        resolution: float = 0.0,
        measured: Floats | None = None,
        is_later: Mask | None = None,
    ) -> Estimate:
        """Return the mean of values in order; if the first half ended measuring, with the error of the later half.

        ``measured``: what that was decided by, if not by these values. ``is_later``: which of them are of the later
        half of the runs.
        """
        by = values if measured is None else measured
        has_ended = self.has_ended or (self.goal is not None and is_precise(by, self.goal))
        later = None if is_later is None else values[is_later]
        return Estimate.of_later_half(values, later) if has_ended else Estimate.of(values, resolution)

    @property
    def _are_later(self) -> Mask | None:
        """Which values in order are in the later half of the rounds of their runs, if known.

        A round may be there twice, as in copied evidence; common rounds of two samples are not.
        """
        if self.run_rounds is None or self.rounds is None or np.isnan(self.run_rounds).any():
            return None
        return np.isin(np.sort(self.rounds), later_half(np.sort(self.run_rounds)))

    def _is_later(self, other: "Sample") -> Mask | None:
        """Return which of the common rounds of two samples are in the later half of those of their runs, if known."""
        if self.run_rounds is None or other.run_rounds is None or self.rounds is None or other.rounds is None:
            return None
        later = later_half(np.intersect1d(self.run_rounds, other.run_rounds))
        return np.isin(np.intersect1d(self.rounds, other.rounds), later)

    def at_one_pace(self, other: "Sample") -> Estimate | None:
        """Return the logarithm of the ratio of two rates at one pace of the machine; None where that is not known."""
        values = self.pace.log_ratios(other.pace) if self.pace else None
        measured = self.logarithms.within_rounds(other.logarithms)
        return None if values is None else self._estimate(values, measured=measured, is_later=self._is_later(other))

    def minus(self, other: "Sample") -> Estimate:
        """Return the difference of two means, as the runs were measured.

        In rounds: the mean over common rounds of the differences within a round, so that what a round has in common
        cancels. Independent: the difference of the two means, after Welch. With fewer than 3 common rounds, as of
        configurations in blocks, the difference of the two means has no error: what happened between the runs of the
        one and those of the other is in it and can't be told from the configurations.
        """
        if self.rounds is None or other.rounds is None:
            return self.estimate.minus(other.estimate)
        differences = self.within_rounds(other)
        if differences.size < MINIMUM_RUNS:
            mean = float(self.values.mean() - other.values.mean())
            return Estimate(mean, reason=NoInterval.FEW_ROUNDS)
        resolution = math.hypot(self.resolution, other.resolution)
        return self._estimate(differences, resolution, is_later=self._is_later(other))


def log_ratio(numerators: Sample, denominators: Sample) -> Estimate:
    """Return the estimated logarithm of the ratio of two rates, at one pace of the machine where that is known."""
    return numerators.at_one_pace(denominators) or numerators.logarithms.minus(denominators.logarithms)


def is_precise(logarithms: Floats, goal: float) -> bool:
    """Return whether measuring ends: the interval of the first values is narrow enough, and as many came after them.

    ``logarithms``: of rates or ratios, in the order in which they were measured. ``goal``: the half-width that ends it.
    """
    for count in range(MINIMUM_RUNS, logarithms.size // 2 + 1):
        interval = Estimate.of(logarithms[:count]).interval()
        if interval is not None and interval.high - interval.low <= 2 * goal:
            return True
    return False


def later_half(values: Floats) -> Floats:
    """Return the later half of values in order, without the middle one of an odd number."""
    return values[values.size - values.size // 2 :]


def are_equal(values: Floats) -> bool:
    """Return whether values differ by no more than arithmetic makes of equal ones."""
    return bool(np.ptp(values) <= EQUALITY * max(1.0, float(np.abs(values).max())))


def quotient_interval(numerators: Floats, denominators: Floats) -> Interval | None:
    """Return the 95 % interval of mean(numerators) / mean(denominators), two values of each run, after Fieller.

    It holds the quotients q for which a t test of the mean of numerator − q × denominator finds no difference from 0.
    None with fewer than 3 runs, and where such quotients have no bound: the interval of the denominators holds 0.
    """
    runs = numerators.size
    if runs < MINIMUM_RUNS or (are_equal(numerators) and are_equal(denominators)):
        return None
    means = np.array([numerators.mean(), denominators.mean()])
    covariances = np.cov(numerators, denominators) / runs
    (top, both), (_, bottom) = np.outer(means, means) - t_quantile((1 + CONFIDENCE) / 2, runs - 1) ** 2 * covariances
    if bottom <= 0:
        return None
    # The roots of bottom q² − 2 both q + top; the quotient of the means is between them.
    half_width = math.sqrt(both**2 - bottom * top) / bottom
    return Interval(float(both / bottom - half_width), float(both / bottom + half_width))


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution."""
    # Importing it takes half a second, and the notebook of a configuration makes no interval.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def t_probability(quantile: float, freedom: float) -> float:
    """Return the probability of at most ``quantile`` in Student's t distribution."""
    from scipy.special import stdtr

    return float(stdtr(freedom, quantile))


def distinguishable(p_values: Sequence[float | None]) -> list[bool]:
    """Return which of several hypotheses that are tested together are rejected, after Holm.

    However many of them are true, one of those is rejected with a probability of at most 5 %. Without a p-value a
    hypothesis is never rejected, and is none of those that are tested.
    """
    tested = sorted((p_value, position) for position, p_value in enumerate(p_values) if p_value is not None)
    rejected = [False] * len(p_values)
    for rank, (p_value, position) in enumerate(tested):
        if p_value * (len(tested) - rank) > 1 - CONFIDENCE:
            break
        rejected[position] = True
    return rejected


def equal_within(log_ratio: Estimate, count: int = 1) -> float | None:
    """Return the share x within which two rates are equal: their ratio is between 1/(1+x) and 1+x.

    The larger bound of the 95 % interval of the logarithm of the ratio, as two one-sided tests of 2.5 % make it: the
    interval that is printed next to it. None without an error. ``count``: of how many ratios the bounds are to hold at
    once, by Bonferroni.
    """
    interval = log_ratio.interval(1 - (1 - CONFIDENCE) / count)
    return math.expm1(max(abs(interval.low), abs(interval.high))) if interval else None


def bounded(value: float, interval: Interval | None) -> Bounded:
    """Return a value with the bounds of its interval."""
    return (value, interval.low, interval.high) if interval else (value, None, None)


def interval_columns(name: str, interval: Interval | None) -> dict[str, float]:
    """Return the bounds as the columns of a value hold them, ``<name>_low`` and ``<name>_high``; none without one."""
    return {f"{name}_low": interval.low, f"{name}_high": interval.high} if interval else {}


def median_deviation(values: Floats) -> float:
    """Return the scaled median absolute deviation: the standard deviation of normal data, robust to outliers."""
    return float(DEVIATIONS * np.median(np.abs(values - np.median(values))))


def median_error(deviation: float, count: int) -> float:
    """Return the standard error of the median of ``count`` values with that standard deviation."""
    return MEDIAN_ERROR * deviation / float(np.sqrt(count))
