"""How measurements of different dates are compared: formulas, and how often what is said of them is wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from dlperf_study.metrics.comparison import FASTER, SLOWER, significances
from dlperf_study.metrics.drift import date_change, date_changes
from dlperf_study.metrics.statistics import Estimate

STUDIES, CONFIGURATIONS, RUNS = 400, 6, 5


def test_a_change_is_welchs():
    before, after = (100.0, 101.0, 99.5), (110.0, 108.0, 111.0)
    estimates = [Estimate.from_values(np.log(throughputs)) for throughputs in (before, after)]
    changes = date_changes({"a": estimates[0], "b": estimates[0]}, {"a": estimates[1], "c": estimates[1]}, [])
    assert list(changes) == ["a"]
    assert changes["a"].change_against_mean is None
    expected = stats.ttest_ind(np.log(after), np.log(before), equal_var=False)
    assert changes["a"].log_ratio.p_value() == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    interval = changes["a"].log_ratio.interval()
    assert interval
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_a_departure_is_the_prediction_of_one_further_date():
    logarithms = np.log([100.0, 104.0, 98.0, 101.0, 99.0])
    earlier = list(map(Estimate, logarithms))
    change_against_mean = date_change(earlier[-1], Estimate(math.log(90.0)), earlier).change_against_mean
    assert change_against_mean
    assert change_against_mean.mean == pytest.approx(math.log(90) - logarithms.mean())
    assert change_against_mean.error == pytest.approx(logarithms.std(ddof=1) * math.sqrt(1 + 1 / 5))
    assert change_against_mean.freedom == 4


def test_runs_of_the_latest_date_that_differ_more_than_dates_make_its_departure_as_uncertain():
    earlier, noisy = list(map(Estimate, (0.0, 0.01, 0.02, 0.01, 0.0))), Estimate(0.1, 0.05, 2)
    change_against_mean = date_change(earlier[-1], noisy, earlier).change_against_mean
    assert change_against_mean == Estimate(pytest.approx(0.1 - 0.008), pytest.approx(0.05 * math.sqrt(1 + 1 / 5)), 4)


def test_too_few_or_equal_dates_predict_nothing():
    one, two = Estimate(1.0), Estimate(2.0)
    dates = [{"a": one}, {"a": two}, {"a": one}, {"a": two}, {"b": one}]
    assert date_changes({"a": one}, {"a": two}, dates)["a"].change_against_mean is None
    assert date_change(one, two, [one] * 5).change_against_mean == Estimate(1.0)


@pytest.mark.parametrize("earlier_dates", [5, 8])
def test_departures_are_as_seldom_wrong_as_they_claim(earlier_dates):
    """Dates differ by 2 %, runs of a date by 0.5 %, and nothing changed: at most 5 % of studies may say so."""
    generator = np.random.default_rng(1)
    wrong = wrong_between_two = 0
    for _ in range(STUDIES):
        dates = []
        for _ in range(earlier_dates + 1):
            estimates = {}
            for name in range(CONFIGURATIONS):
                date = generator.normal(0, 0.02)
                estimates[str(name)] = Estimate.from_values(date + generator.normal(0, 0.005, RUNS))
            dates.append(estimates)
        changes = date_changes(dates[-2], dates[-1], dates[:-1])
        wrong += _says_that_something_changed({name: change.change_against_mean for name, change in changes.items()})
        wrong_between_two += _says_that_something_changed({name: each.log_ratio for name, each in changes.items()})
    assert wrong / STUDIES < 0.05 + 3 * math.sqrt(0.05 * 0.95 / STUDIES)
    # Which is why no verdict is made of the interval of two dates.
    assert wrong_between_two / STUDIES > 0.9


def _says_that_something_changed(log_ratios: dict[str, Estimate]) -> bool:
    return any(significance.word in (FASTER, SLOWER) for significance in significances(log_ratios).values())
