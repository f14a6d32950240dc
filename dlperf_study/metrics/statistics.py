"""Estimates over runs with t intervals, and their ratios and differences.

A run is one value, because steps resemble each other more than runs do. Throughputs and ratios are estimated on their
natural logarithms, times and other signed quantities as they are. Sources: Hoefler and Belli, "Scientific benchmarking
of parallel computing systems" (SC'15); Welch, "The generalization of Student's problem when several different
population variances are involved" (1947); Holm, "A simple sequentially rejective multiple test procedure" (1979);
Schuirmann, "A comparison of the two one-sided tests procedure" (1987); Tukey, "Bias and confidence in not quite large
samples" (1958).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cache

import numpy as np

from dlperf_study.core.arrays import Floats

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


class NoInterval(Enum):
    """Why an estimate has no confidence interval.

    FEW_VALUES: fewer than an interval needs. EQUAL_VALUES: they, or their differences within rounds, are equal.
    FEW_ROUNDS: two samples have runs in too few common rounds.
    """

    FEW_VALUES = auto()
    EQUAL_VALUES = auto()
    FEW_ROUNDS = auto()


@dataclass(frozen=True)
class Interval:
    """The two bounds of a 95 % interval."""

    low: float
    high: float

    @property
    def exponential(self) -> "Interval":
        """The interval of a throughput or ratio, from its logarithm's."""
        with np.errstate(over="ignore"):
            return Interval(float(np.exp(self.low)), float(np.exp(self.high)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs, its standard error and degrees of freedom.

    An error of 0 is exact by definition. Of a throughput or ratio it is the mean of logarithms; see ``factor`` and
    ``factor_interval``. ``rounds``: of a ratio, those with runs of both sides, and of independent runs the fewer of the
    two. ``looks``: how often a study with a target precision looked at its intervals, if that ended measuring, else 1:
    a quantile is corrected for them (Bonferroni). ``reason``: why there is no error.
    """

    mean: float
    error: float | None = None
    freedom: float = MANY
    rounds: float = MANY
    looks: int = 1
    reason: NoInterval | None = field(default=None, compare=False)

    @classmethod
    def from_values(cls, values: Values, resolution: float = 0.0, looks: int = 1) -> "Estimate":
        """Return the mean of values; below 3 values without an error.

        ``resolution``: one unit of the last digit of printed values, or 0. Close values are rounded alike, so their
        mean is at least as uncertain as one of them. Equal values without a resolution have no error.
        """
        runs = np.asarray(values, dtype=np.float64)
        mean, count = float(runs.mean()), runs.size
        if count < MINIMUM_RUNS:
            return cls(mean, rounds=count, reason=NoInterval.FEW_VALUES)
        deviation = 0.0 if are_equal(runs) else float(runs.std(ddof=1))
        error = max(deviation / math.sqrt(count), resolution * ROUNDING_DEVIATION)
        reason = None if error else NoInterval.EQUAL_VALUES
        return cls(mean, error or None, count - 1, count, looks, reason)

    @classmethod
    def from_printed(
        cls, value: float, low: float, high: float, runs: int | None = None, resolution: float = 0.0, looks: int = 1
    ) -> "Estimate":
        """Return the logarithm of a throughput, from its printed 95 % interval.

        ``resolution``: one unit of the last digit of the throughput / the throughput, or 0. Equal bounds were rounded
        alike. ``looks``: those that the interval is corrected for.
        """
        freedom = runs - 1 if runs and runs >= MINIMUM_RUNS else MANY
        half_width = math.log(high / low) / 2
        quantile = t_quantile(1 - (1 - CONFIDENCE) / 2 / looks, freedom)
        error = max(half_width / quantile, resolution * ROUNDING_DEVIATION)
        return cls(math.log(value), error or None, freedom, runs or MANY, looks)

    @property
    def factor(self) -> float:
        """The throughput or ratio of which this is the logarithm."""
        return math.exp(self.mean)

    def interval(self, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the t interval of the mean, or None."""
        if self.error is None:
            return None
        half_width = self.error * t_quantile(1 - (1 - confidence) / 2 / self.looks, self.freedom)
        return Interval(self.mean - half_width, self.mean + half_width)

    def positive_interval(self, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the interval of the mean of positive values, or None.

        The t interval of the logarithm of the mean, whose standard error is error / mean by the delta method. The mean
        stays arithmetic, so that means of parts add up to that of the whole.
        """
        if self.error is None or self.mean <= 0:
            return self.interval(confidence)
        logarithm = replace(self, mean=math.log(self.mean), error=self.error / self.mean).interval(confidence)
        return logarithm and logarithm.exponential

    def share_interval(self, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the interval of a mean of shares, at most 1."""
        rest = replace(self, mean=1 - self.mean).positive_interval(confidence)
        if rest:
            return Interval(1 - rest.high, 1 - rest.low)
        return None

    def factor_interval(self) -> Interval | None:
        """Return the interval of the throughput or ratio, or None."""
        interval = self.interval()
        return interval and interval.exponential

    @property
    def bounded_factor(self) -> Bounded:
        """The throughput or ratio, with its interval."""
        return bounded(self.factor, self.factor_interval())

    def p_value(self, null: float = 0.0) -> float | None:
        """Return the two-sided p-value of a mean of ``null``, or None."""
        if not self.error:
            return None
        p_value = 2.0 * t_probability(-abs(self.mean - null) / self.error, self.freedom)
        return min(1.0, self.looks * p_value)

    def minus(self, other: "Estimate") -> "Estimate":
        """Return the difference of independent means (Welch and Satterthwaite)."""
        mean = self.mean - other.mean
        rounds, looks = min(self.rounds, other.rounds), max(self.looks, other.looks)
        if self.error is None or other.error is None:
            return Estimate(mean, rounds=rounds, reason=self.reason or other.reason)
        first, second = self.error**2, other.error**2
        weights = first**2 / self.freedom + second**2 / other.freedom
        freedom = (first + second) ** 2 / weights if weights else min(self.freedom, other.freedom)
        return Estimate(mean, math.sqrt(first + second), freedom, rounds, looks)


@dataclass(frozen=True, slots=True)
class Sample:
    """The runs of one configuration, and their rounds.

    ``rounds`` [runs]: NaN for a run that was in no round. None: the runs are independent of all others, as those of
    third-party logs and publications. ``resolution``: one unit of the last digit of printed values, else 0. ``looks``:
    see ``Estimate``.
    """

    values: Floats
    rounds: Floats | None = None
    resolution: float = 0.0
    looks: int = 1

    @property
    def logarithms(self) -> "Sample":
        """The same runs with the logarithms of their values."""
        return replace(self, values=np.log(self.values), resolution=self.resolution / float(self.values.mean()))

    @property
    def estimate(self) -> Estimate:
        """The mean of the values."""
        return Estimate.from_values(self.values, self.resolution, self.looks)

    def within_rounds(self, other: "Sample") -> Floats:
        """Return the differences within common rounds, in order."""
        if self.rounds is None or other.rounds is None:
            return np.empty(0)
        _, positions, other_positions = np.intersect1d(self.rounds, other.rounds, return_indices=True)
        differences: Floats = self.values[positions] - other.values[other_positions]
        return differences

    def minus(self, other: "Sample") -> Estimate:
        """Return the difference of two means, within rounds if any.

        In rounds: the mean over common rounds of the differences within a round, so that drift cancels. Independent:
        the difference of the two means, after Welch. With fewer than 3 common rounds, as of configurations in
        sequential order, the difference has no error.
        """
        if self.rounds is None or other.rounds is None:
            return self.estimate.minus(other.estimate)
        differences = self.within_rounds(other)
        if differences.size < MINIMUM_RUNS:
            mean = float(self.values.mean() - other.values.mean())
            return Estimate(mean, rounds=differences.size, reason=NoInterval.FEW_ROUNDS)
        resolution = math.hypot(self.resolution, other.resolution)
        return Estimate.from_values(differences, resolution, max(self.looks, other.looks))


def log_ratio(numerators: Sample, denominators: Sample) -> Estimate:
    """Return the logarithm of the quotient of two mean throughputs.

    Its error is that of the differences within rounds. If one of the two has no run in some rounds, it is that of the
    jackknife over rounds (Tukey 1958), which is the same if none is missing.
    """
    first, second = numerators.logarithms, denominators.logarithms
    difference = first.minus(second)
    common = first.within_rounds(second).size
    if common < MINIMUM_RUNS or common == first.values.size == second.values.size:
        return difference
    mean = float(first.values.mean() - second.values.mean())
    # What rounding may hide, as in ``Estimate.from_values``.
    floor = math.hypot(first.resolution, second.resolution) * ROUNDING_DEVIATION
    is_known = not (are_equal(first.values) and are_equal(second.values))
    error = max(_jackknife_error(first, second) if is_known else 0.0, floor)
    return replace(difference, mean=mean, error=error or None, reason=None if error else NoInterval.EQUAL_VALUES)


def _jackknife_error(first: Sample, second: Sample) -> float:
    """Return the jackknife standard error of a difference over rounds."""
    first_rounds, second_rounds = _distinct_rounds(first, 1), _distinct_rounds(second, 2)
    differences = []
    for left_out in np.union1d(first_rounds, second_rounds):
        remaining = first.values[first_rounds != left_out].mean()
        differences.append(remaining - second.values[second_rounds != left_out].mean())
    deviations = np.array(differences) - np.mean(differences)
    return math.sqrt((deviations.size - 1) / deviations.size * float(np.sum(deviations**2)))


def _distinct_rounds(sample: Sample, side: int) -> Floats:
    """Return the rounds of runs, with unique numbers outside rounds."""
    assert sample.rounds is not None
    rounds_of_their_own = -(2.0 * np.arange(sample.values.size) + side)
    return np.where(np.isnan(sample.rounds), rounds_of_their_own, sample.rounds)


def rounds_needed(comparisons: int) -> int:
    """Return the rounds that a test needs: 1 + ln(8 comparisons) / 1.5.

    With fewer, a host that has two speeds by turns makes more than 5 % of studies claim something false.
    """
    return math.ceil(1 + math.log(8 * comparisons) / 1.5)


def significant(estimates: Sequence[Estimate], nulls: Sequence[float] | None = None) -> list[bool]:
    """Return which estimates differ from their null, 0 by default (Holm).

    None with fewer rounds than ``rounds_needed``. The family-wise error is at most 5 %.
    """
    p_values = list(map(Estimate.p_value, estimates, nulls or [0.0] * len(estimates)))
    rejected = distinguishable(p_values)
    fewest = rounds_needed(max(1, sum(p_value is not None for p_value in p_values)))
    return [is_rejected and each.rounds >= fewest for is_rejected, each in zip(rejected, estimates, strict=True)]


def are_equal(values: Floats) -> bool:
    """Return whether values are equal up to rounding errors."""
    return bool(np.ptp(values) <= EQUALITY * max(1.0, float(np.abs(values).max())))


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution."""
    # Importing it takes half a second, and the notebook of a configuration makes no interval.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def chi_squared_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of the chi-squared distribution."""
    from scipy.special import chdtri

    return float(chdtri(freedom, 1 - probability))


def t_probability(quantile: float, freedom: float) -> float:
    """Return the probability of at most ``quantile`` in Student's t distribution."""
    from scipy.special import stdtr

    return float(stdtr(freedom, quantile))


def distinguishable(p_values: Sequence[float | None]) -> list[bool]:
    """Return which hypotheses are rejected together (Holm)."""
    tested = sorted((p_value, position) for position, p_value in enumerate(p_values) if p_value is not None)
    rejected = [False] * len(p_values)
    for rank, (p_value, position) in enumerate(tested):
        if p_value * (len(tested) - rank) > 1 - CONFIDENCE:
            break
        rejected[position] = True
    return rejected


def equal_within(log_ratio: Estimate, count: int = 1) -> float | None:
    """Return the equivalence margin x: the ratio is in [1/(1+x), 1+x].

    The larger bound of the 95 % interval of the logarithm of the ratio, as two one-sided tests of 2.5 %. None without
    an error. ``count``: of how many ratios the bounds are to hold at once (Bonferroni).
    """
    interval = log_ratio.interval(1 - (1 - CONFIDENCE) / count)
    if interval:
        return math.expm1(max(abs(interval.low), abs(interval.high)))
    return None


def bounded(value: float, interval: Interval | None) -> Bounded:
    """Return a value with the bounds of its interval."""
    if interval:
        return value, interval.low, interval.high
    return value, None, None


def interval_columns(name: str, interval: Interval | None) -> dict[str, float]:
    """Return the columns ``<name>_low`` and ``<name>_high``, if any."""
    if interval:
        return {f"{name}_low": interval.low, f"{name}_high": interval.high}
    return {}


def median_deviation(values: Floats) -> float:
    """Return the scaled median absolute deviation, a robust standard deviation."""
    return float(DEVIATIONS * np.median(np.abs(values - np.median(values))))


def median_error(deviation: float, count: int) -> float:
    """Return the standard error of the median of ``count`` normal values."""
    return MEDIAN_ERROR * deviation / float(np.sqrt(count))
