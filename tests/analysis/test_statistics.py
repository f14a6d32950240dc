"""Against scipy.stats, against numbers worked out by hand, and against simulated runs whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from dlperf_study.analysis.statistics import (
    Estimate,
    Interval,
    Sample,
    distinguishable,
    equal_within,
    interval_columns,
    log_ratio,
    median_deviation,
)

VALUES = [9.5, 10.0, 10.1, 12.0]


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0]])
def test_fewer_than_three_runs_have_a_mean_and_no_interval(values):
    estimate = Estimate.of(values)
    assert estimate.mean == np.mean(values)
    assert (estimate.interval(), estimate.p_value(), equal_within(estimate)) == (None, None, None)


@pytest.mark.parametrize("runs", [3, 4, 10])
def test_the_interval_is_that_of_students_t(runs):
    values = np.random.default_rng(runs).normal(5.0, 1.0, runs)
    expected = stats.t.interval(0.95, runs - 1, values.mean(), stats.sem(values))
    interval = Estimate.of(values).interval()
    assert (interval.low, interval.high) == pytest.approx(expected)


def test_the_p_value_is_that_of_a_t_test():
    assert Estimate.of(VALUES).p_value(9.0) == pytest.approx(stats.ttest_1samp(VALUES, 9.0).pvalue)


def test_equal_runs_have_an_interval_without_width_and_leave_no_doubt():
    estimate = Estimate.of([2.0, 2.0, 2.0])
    assert estimate.interval() == Interval(2.0, 2.0)
    assert (estimate.p_value(2.0), estimate.p_value(2.1)) == (1.0, 0.0)


def test_a_rate_is_the_geometric_mean_and_its_interval_that_of_the_logarithms():
    estimate = Estimate.of(np.log(VALUES))
    assert estimate.factor == pytest.approx(stats.gmean(VALUES))
    expected = stats.t.interval(0.95, 3, np.log(VALUES).mean(), stats.sem(np.log(VALUES)))
    interval = estimate.factor_interval()
    assert (interval.low, interval.high) == pytest.approx(tuple(np.exp(expected)))


def test_independent_runs_are_compared_after_welch():
    rates, other_rates = [19.0, 20.0, 21.5], VALUES
    estimate = log_ratio(Sample(np.array(rates)), Sample(np.array(other_rates)))
    expected = stats.ttest_ind(np.log(rates), np.log(other_rates), equal_var=False)
    assert estimate.p_value() == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (estimate.interval().low, estimate.interval().high) == pytest.approx((low, high))


def in_rounds(values, rounds):
    return Sample(np.array(values, dtype=float), np.array(rounds, dtype=float))


def test_runs_of_one_round_are_compared_within_it():
    first = in_rounds([110.0, 121.0, 99.0, 500.0], [1, 2, 3, 5])
    second = in_rounds([90.0, 100.0, 110.0, 800.0], [3, 1, 2, 4])
    estimate = log_ratio(first, second)
    assert estimate.factor == pytest.approx(1.1)
    assert estimate.error == pytest.approx(0.0, abs=1e-15)


def test_a_drift_that_both_have_cancels_within_rounds():
    drift = np.array([1.0, 0.9, 0.8, 0.7])
    noise = np.array([1.001, 0.999, 1.0, 1.002])
    rounds = np.arange(4.0)
    first, second = Sample(200 * drift * noise, rounds), Sample(100 * drift, rounds)
    interval = log_ratio(first, second).factor_interval()
    assert 1.99 < interval.low < 2 < interval.high < 2.01


def test_with_fewer_than_three_common_rounds_nothing_is_known_of_the_error():
    first, second = in_rounds([4.0, 4.0, 4.0], [1, 2, 3]), in_rounds([2.0, 2.0, 8.0], [2, 3, 4])
    estimate = first.minus(second)
    assert (estimate.mean, estimate.error) == (0.0, None)


def test_runs_of_no_round_share_none():
    blocks = in_rounds([1.0, 2.0, 3.0], [math.nan] * 3)
    assert blocks.minus(blocks).error is None


def test_a_printed_interval_is_as_good_as_its_runs():
    runs = Estimate.of(np.log(VALUES))
    interval = runs.factor_interval()
    printed = Estimate.of_printed(runs.factor, interval.low, interval.high, 4)
    assert (printed.error, printed.freedom) == (pytest.approx(runs.error), 3)
    unknown = Estimate.of_printed(runs.factor, interval.low, interval.high).factor_interval()
    assert (unknown.low, unknown.high) == pytest.approx((interval.low, interval.high))


#: P-values, and which are rejected together: by hand, each against 5 % / the number of those that remain.
HOLM = [
    ([0.04], [True]),
    ([0.04, 0.04], [False, False]),
    ([0.04, 0.02], [True, True]),
    ([0.04, None], [True, False]),
    ([0.03, 0.001, 0.02], [True, True, True]),
    ([0.03, 0.001, 0.026], [False, True, False]),
    ([None, None], [False, False]),
    ([], []),
]


@pytest.mark.parametrize(("p_values", "expected"), HOLM)
def test_statements_that_are_made_together_are_judged_together(p_values, expected):
    assert distinguishable(p_values) == expected


def test_equality_is_shown_by_two_one_sided_tests():
    estimate = Estimate.of([0.010, 0.012, 0.011, 0.013])
    bound = math.log1p(equal_within(estimate))
    assert stats.ttest_1samp([0.010, 0.012, 0.011, 0.013], bound, alternative="less").pvalue == pytest.approx(0.05)


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_the_interval_covers_as_often_as_it_claims(runs):
    generator = np.random.default_rng(runs)
    studies = 2000
    covered = 0
    for rates in np.exp(generator.normal(0.0, 0.02, (studies, runs))):
        interval = Estimate.of(np.log(rates)).factor_interval()
        covered += interval.low <= 1.0 <= interval.high
    assert covered / studies == pytest.approx(0.95, abs=0.02)


def test_the_median_deviation_of_normal_values_is_their_standard_deviation():
    values = np.random.default_rng(1).normal(10.0, 2.0, 20_000)
    assert median_deviation(values) == pytest.approx(2.0, rel=0.03)


def test_an_interval_is_two_columns_and_none_is_none():
    assert interval_columns("throughput", Interval(1.0, 2.0)) == {"throughput_low": 1.0, "throughput_high": 2.0}
    assert interval_columns("throughput", None) == {}
