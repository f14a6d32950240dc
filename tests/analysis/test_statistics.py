"""Against truth found another way: every resample enumerated, and simulated runs whose median is known."""

from itertools import product
from statistics import median

import numpy as np
import pytest

from dlperf_study.analysis import statistics
from dlperf_study.analysis.statistics import (
    Interval,
    coverage,
    difference_interval,
    distinguishable,
    interval_columns,
    median_deviation,
    median_interval,
    ratio_interval,
)


def every_resampled_median(values):
    return [median(draw) for draw in product(values, repeat=len(values))]


@pytest.mark.parametrize(("runs", "covered"), [(3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.95), (30, 0.95)])
def test_coverage_is_bounded_by_the_chance_that_all_runs_fall_on_one_side(runs, covered):
    assert coverage(runs) == covered


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0]])
def test_fewer_than_three_runs_have_no_interval(values):
    assert coverage(len(values)) is None
    assert median_interval(values) is None
    assert ratio_interval(values, [1.0, 2.0, 3.0]) is None
    assert ratio_interval([1.0, 2.0, 3.0], values) is None


def test_the_interval_of_three_runs_is_their_range():
    assert median_interval([5.0, 3.0, 4.0]) == Interval(3.0, 5.0, 0.75)


@pytest.mark.parametrize("values", [[3.0, 1.0, 10.0, 4.0], [2.0, 3.0, 5.0, 7.0, 11.0]])
def test_the_interval_is_that_of_all_possible_resamples(values):
    exact = np.quantile(every_resampled_median(values), [0.025, 0.975])
    found = median_interval(values)
    assert (found.low, found.high) == pytest.approx(tuple(exact), rel=0.02)


def test_three_runs_cover_the_true_median_three_times_out_of_four():
    generator = np.random.default_rng(7)
    intervals = [median_interval(generator.lognormal(size=3)) for _ in range(1500)]
    covered = np.mean([interval.low <= 1.0 <= interval.high for interval in intervals])
    assert covered == pytest.approx(coverage(3), abs=0.03)


def test_the_interval_of_a_ratio_resamples_the_runs_of_both():
    above, below = [18.0, 20.0, 21.0, 23.0], [9.5, 10.0, 10.1, 12.0]
    ratios = [a / b for a, b in product(every_resampled_median(above), every_resampled_median(below))]
    found = ratio_interval(above, below)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(ratios, [0.025, 0.975])), rel=0.02)
    assert found.coverage == coverage(4)


def test_the_interval_of_a_ratio_is_wider_than_that_of_its_numerator():
    above, below = [19.0, 20.0, 21.0], [9.0, 10.0, 11.0]
    alone, ratio = median_interval(above), ratio_interval(above, below)
    assert ratio.high - ratio.low > (alone.high - alone.low) / 10.0
    assert (ratio.low, ratio.high) == pytest.approx((19 / 11, 21 / 9))


def test_the_interval_of_a_difference_resamples_the_runs_of_both():
    minuends, subtrahends = [18.0, 20.0, 21.0, 23.0], [9.0, 11.0, 14.0]
    exact = [a - b for a, b in product(every_resampled_median(minuends), every_resampled_median(subtrahends))]
    found = difference_interval(minuends, subtrahends)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(exact, [0.025, 0.975])), rel=0.02)
    assert found.coverage == coverage(3)
    assert difference_interval(minuends, subtrahends[:2]) is None


def test_the_same_values_give_the_same_interval_in_every_process():
    values = [1.0, 5.0, 2.0, 8.0, 3.0, 9.0, 4.0]
    first = median_interval(values)
    statistics._draws.cache_clear()
    assert median_interval(values) == first


def test_the_runs_of_both_are_drawn_independently():
    values = [1.0, 5.0, 2.0, 8.0, 3.0, 9.0, 4.0]
    found = ratio_interval(values, values)
    assert found.low < 1 < found.high


def test_values_are_distinguishable_only_if_both_have_intervals_that_do_not_touch():
    low, middle, high = Interval(1, 2, 0.75), Interval(2, 3, 0.75), Interval(3.5, 4, 0.75)
    assert distinguishable(low, high)
    assert distinguishable(high, low)
    assert not distinguishable(low, middle)
    assert not distinguishable(low, None)
    assert not distinguishable(None, high)


def test_the_median_deviation_of_normal_values_is_their_standard_deviation():
    values = np.random.default_rng(1).normal(10.0, 2.0, 20_000)
    assert median_deviation(values) == pytest.approx(2.0, rel=0.03)


def test_an_interval_is_two_columns_and_none_is_none():
    assert interval_columns("throughput", Interval(1.0, 2.0, 0.75)) == {"throughput_low": 1.0, "throughput_high": 2.0}
    assert interval_columns("throughput", None) == {}
