"""Against scipy.stats, against numbers worked out by hand, and against simulated runs whose truth is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dlperf_study.metrics.statistics import (
    CONFIDENCE,
    EQUALITY,
    Estimate,
    Interval,
    NoInterval,
    Sample,
    _jackknife_error,
    are_equal,
    distinguishable,
    equal_within,
    interval_columns,
    log_ratio,
    median_deviation,
    median_error,
    rounds_needed,
    significant,
)

VALUES = [9.5, 10.0, 10.1, 12.0]


@pytest.mark.parametrize("runs", [3, 4, 10])
def test_the_interval_is_that_of_students_t(runs):
    values = np.random.default_rng(runs).normal(5.0, 1.0, runs)
    expected = stats.t.interval(0.95, runs - 1, values.mean(), stats.sem(values))
    interval = Estimate.from_values(values).interval()
    assert (interval.low, interval.high) == pytest.approx(expected)


@pytest.mark.parametrize("shift", [-0.1, -0.03, 0.03, 0.1])
def test_two_throughputs_are_equal_within_the_bound_that_is_further_from_one(shift):
    """As two one-sided tests show it: scipy gives each half of 5 %."""
    logarithms = shift + np.array([-0.01, 0.0, 0.01])
    estimate = Estimate.from_values(logarithms)
    interval = estimate.interval()
    further = max(-interval.low, interval.high)
    assert further > abs(shift)
    assert equal_within(estimate) == pytest.approx(np.expm1(further))
    assert stats.ttest_1samp(np.sign(shift) * logarithms, further, alternative="less").pvalue == pytest.approx(0.025)


def test_known_resolution_changes_only_what_is_rounded_alike():
    assert Estimate.from_values(VALUES).p_value(9.0) == pytest.approx(stats.ttest_1samp(VALUES, 9.0).pvalue)
    assert Estimate(0.0, 0.0, 2).interval() == Interval(0.0, 0.0)
    assert Estimate(0.0, 0.0, 2).p_value() is None
    assert Estimate.from_values(VALUES, resolution=0.1) == Estimate.from_values(VALUES)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [2.0] * 3, [0.1] * 3, np.log([0.1] * 5), [0.3, 0.1 + 0.2, 0.3]])
def test_fewer_than_three_or_equal_runs_have_a_mean_and_no_interval(values):
    estimate = Estimate.from_values(values)
    assert estimate.mean == pytest.approx(np.mean(values))
    assert (estimate.interval(), estimate.p_value(2.1), equal_within(estimate)) == (None, None, None)


def test_runs_that_are_rounded_alike_are_as_uncertain_as_their_last_digit():
    """100.4 and 100.6 are printed as 100 and 101, in every run."""
    lower, higher = (Sample(np.full(3, value), resolution=1.0) for value in (100.0, 101.0))
    interval = lower.estimate.interval()
    assert interval.low < 99.5
    assert interval.high > 100.5
    ratio = log_ratio(higher, lower)
    assert ratio.p_value() > 0.05
    assert ratio.factor_interval().low < 100.6 / 100.4 < ratio.factor_interval().high


@pytest.mark.parametrize("spread", [0.01, 0.1, 0.3, 1.0, 3.0])
def test_intervals_of_rounded_runs_cover_as_often_as_they_claim(spread):
    generator = np.random.default_rng(1)
    studies, covered = 1000, 0
    for truth in generator.uniform(100.0, 101.0, studies):
        runs = np.round(generator.normal(truth, spread, 4))
        interval = Estimate.from_values(runs, resolution=1.0).interval()
        covered += interval.low <= truth <= interval.high
    assert covered / studies > 0.93


def test_a_throughput_is_the_geometric_mean_and_its_interval_that_of_the_logarithms():
    estimate = Estimate.from_values(np.log(VALUES))
    assert estimate.factor == pytest.approx(stats.gmean(VALUES))
    expected = stats.t.interval(0.95, 3, np.log(VALUES).mean(), stats.sem(np.log(VALUES)))
    interval = estimate.factor_interval()
    assert (interval.low, interval.high) == pytest.approx(tuple(np.exp(expected)))


def in_rounds(values, rounds):
    return Sample(np.array(values, dtype=float), np.array(rounds, dtype=float))


@pytest.mark.parametrize("rounds", [None, np.arange(4.0)], ids=["no rounds", "rounds of one"])
def test_independent_runs_are_compared_after_welch(rounds):
    throughputs, other_throughputs = [19.0, 20.0, 21.5], VALUES
    independent, other = Sample(np.array(throughputs)), Sample(np.array(other_throughputs), rounds)
    estimate = log_ratio(independent, other)
    expected = stats.ttest_ind(np.log(throughputs), np.log(other_throughputs), equal_var=False)
    assert estimate.p_value() == log_ratio(other, independent).p_value() == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (estimate.interval().low, estimate.interval().high) == pytest.approx((low, high))


def test_runs_of_one_round_are_compared_within_it():
    first = in_rounds([111.0, 121.0, 98.0, 500.0], [1, 2, 3, 5])
    second = in_rounds([90.0, 100.0, 110.0, 800.0], [3, 1, 2, 4])
    ratios = np.array([111 / 100, 121 / 110, 98 / 90])
    estimate = first.logarithms.minus(second.logarithms)
    assert estimate.factor == pytest.approx(stats.gmean(ratios))
    assert estimate.error == pytest.approx(stats.sem(np.log(ratios)))


def test_a_ratio_is_the_quotient_of_the_throughputs_also_where_rounds_are_missing():
    """The jackknife over rounds, written out: without each round in turn."""
    first = in_rounds([111.0, 121.0, 98.0, 130.0], [1, 2, 3, 5])
    second = in_rounds([90.0, 100.0, 110.0, 80.0, 95.0], [3, 1, 2, 4, math.nan])
    ratio = log_ratio(first, second)
    assert ratio.factor == pytest.approx(stats.gmean(first.values) / stats.gmean(second.values))
    assert (ratio.freedom, ratio.rounds) == (2, 3)
    without = []
    for left_out in (1, 2, 3, 4, 5, None):
        is_kept = [number != left_out and not (left_out is None and math.isnan(number)) for number in second.rounds]
        remaining = np.log(first.values[first.rounds != left_out]).mean()
        without.append(remaining - np.log(second.values[is_kept]).mean())
    expected = math.sqrt(5 / 6 * np.sum((np.array(without) - np.mean(without)) ** 2))
    assert ratio.error == pytest.approx(expected)


def test_equal_values_have_no_interval_if_a_round_is_missing_either():
    first = Sample(np.full(7, 142.1), np.arange(7.0))
    ratio = log_ratio(first, Sample(np.full(6, 80.3), np.arange(6.0)))
    assert (ratio.error, ratio.reason) == (None, NoInterval.EQUAL_VALUES)
    printed = log_ratio(replace(first, resolution=0.1), Sample(np.full(6, 80.3), np.arange(6.0), resolution=0.1))
    assert printed.error == pytest.approx(math.hypot(0.1 / 142.1, 0.1 / 80.3) / math.sqrt(12), rel=1e-3)


def test_the_jackknife_is_the_paired_t_test_if_no_round_is_missing():
    first, second = in_rounds([111.0, 121.0, 98.0], [1, 2, 3]), in_rounds([90.0, 100.0, 110.0], [3, 1, 2])
    assert _jackknife_error(first, second) == pytest.approx(first.minus(second).error)


@pytest.mark.parametrize(("comparisons", "rounds"), [(1, 3), (2, 3), (11, 4), (39, 5), (100, 6)])
def test_more_comparisons_need_more_rounds(comparisons, rounds):
    assert rounds_needed(comparisons) == rounds


def test_nothing_is_significant_with_fewer_rounds_than_the_comparisons_need():
    clear = [Estimate(0.5, 0.001, 2, 3)] * 2
    assert significant(clear) == [True, True]
    assert significant(clear * 2) == [False] * 4
    assert significant([Estimate(0.5, 0.001, 3, 4)] * 4) == [True] * 4


def test_looks_make_intervals_wider_and_p_values_larger():
    plain = Estimate(0.1, 0.02, 5, 6)
    corrected = replace(plain, looks=3)
    assert corrected.interval().high - 0.1 == pytest.approx(0.02 * stats.t.ppf(1 - 0.025 / 3, 5))
    assert corrected.p_value() == pytest.approx(3 * plain.p_value())


def test_without_common_rounds_or_an_error_a_difference_has_no_error():
    first, second = in_rounds([4.0, 4.0, 4.0], [1, 2, 3]), in_rounds([2.0, 2.0, 8.0], [2, 3, 4])
    estimate = first.minus(second)
    assert (estimate.mean, estimate.error) == (0.0, None)
    blocks = in_rounds([1.0, 2.0, 3.0], [math.nan] * 3)
    assert blocks.minus(blocks).error is None
    known, unknown = Estimate.from_values(VALUES), Estimate.from_values([3.0, 4.0])
    assert (known.minus(unknown).mean, known.minus(unknown).error) == (known.mean - 3.5, None)
    assert (unknown.minus(known).mean, unknown.minus(known).error) == (3.5 - known.mean, None)


def test_a_printed_interval_is_as_good_as_its_runs():
    runs = Estimate.from_values(np.log(VALUES))
    interval = runs.factor_interval()
    printed = Estimate.from_printed(runs.factor, interval.low, interval.high, 4)
    assert (printed.error, printed.freedom) == (pytest.approx(runs.error), 3)
    assert Estimate.from_printed(100.0, 100.0, 100.0, 4).error is None
    assert Estimate.from_printed(100.0, 100.0, 100.0, 4, resolution=0.01).error == pytest.approx(0.01 / math.sqrt(12))
    unknown = Estimate.from_printed(runs.factor, interval.low, interval.high).factor_interval()
    assert (unknown.low, unknown.high) == pytest.approx((interval.low, interval.high))
    assert [Estimate.from_printed(2.0, 1.0, 4.0, runs).freedom for runs in (2, 3)] == [Estimate(0.0).freedom, 2]


def test_exact_means_have_an_exact_difference_of_the_fewer_degrees_of_freedom():
    few, more = Estimate(1.0, 0.0, 2), Estimate(2.0, 0.0, 4)
    assert few.minus(more) == Estimate(-1.0, 0.0, 2)
    assert more.minus(few) == Estimate(1.0, 0.0, 2)


#: P-values, and which are rejected together: by hand, each against 5 % / the number of those that remain.
HOLM = [
    ([0.04], [True]),
    ([0.04, 0.04], [False, False]),
    ([0.04, 0.02], [True, True]),
    ([0.04, None], [True, False]),
    ([0.03, 0.001, 0.02], [True, True, True]),
    ([0.03, 0.001, 0.026], [False, True, False]),
    ([1 - CONFIDENCE], [True]),
    ([None, None], [False, False]),
    ([], []),
]


@pytest.mark.parametrize(("p_values", "expected"), HOLM)
def test_statements_that_are_made_together_are_judged_together(p_values, expected):
    assert distinguishable(p_values) == expected


def test_medians_and_rounding_have_the_errors_of_many_samples():
    values = np.random.default_rng(1).normal(10.0, 2.0, 20_000)
    assert median_deviation(values) == pytest.approx(2.0, rel=0.03)
    medians = np.median(np.random.default_rng(1).normal(10.0, 2.0, (2000, 101)), axis=1)
    assert median_error(2.0, 101) == pytest.approx(medians.std(), rel=0.05)
    # The deviation of what was rounded away, which is evenly distributed over one unit of the last digit.
    exact = np.random.default_rng(1).uniform(9.95, 10.05, 20_000)
    assert Estimate.from_values([10.0] * 3, resolution=0.1).error == pytest.approx((exact - 10.0).std(), rel=0.02)


def test_an_interval_is_two_columns_and_may_be_larger_than_any_number():
    assert interval_columns("throughput", Interval(1.0, 2.0)) == {"throughput_low": 1.0, "throughput_high": 2.0}
    assert interval_columns("throughput", None) == {}
    assert Interval(-800.0, 800.0).exponential == Interval(0.0, float("inf"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, EQUALITY], True), ([0.0, 2 * EQUALITY], False), ([1e9, 1e9 + 5e-4], True), ([1e9, 1e9 + 2e-3], False)],
)
def test_values_are_equal_up_to_what_arithmetic_makes_of_them(values, expected):
    assert are_equal(np.array(values)) is expected
