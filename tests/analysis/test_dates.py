"""How measurements of different dates are compared: formulas, and how often what is said of them is wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from dlperf_study.analysis.comparison import FASTER, SLOWER, verdicts
from dlperf_study.analysis.dates import changes, departures, ratio_changes
from dlperf_study.analysis.statistics import Estimate, Sample

STUDIES, CONFIGURATIONS, RUNS = 400, 6, 5


def sample(*rates: float, rounds: bool = True) -> Sample:
    values = np.array(rates)
    return Sample(values, np.arange(values.size, dtype=float) if rounds else None)


def test_a_change_is_welchs_also_where_rounds_have_the_same_numbers() -> None:
    before, after = (100.0, 101.0, 99.5), (110.0, 108.0, 111.0)
    ratios = changes({"a": sample(*before), "b": sample(*before)}, {"a": sample(*after), "c": sample(*after)})
    assert list(ratios) == ["a"]
    expected = stats.ttest_ind(np.log(after), np.log(before), equal_var=False)
    assert ratios["a"].p_value() == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    interval = ratios["a"].factor_interval()
    assert interval
    assert (interval.low, interval.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_a_departure_is_the_prediction_of_one_further_date() -> None:
    dates = [100.0, 104.0, 98.0, 101.0]
    earlier = [{"a": sample(date)} for date in dates]
    [departure] = departures(earlier, {"a": sample(90.0, 90.0)}).values()
    logarithms = np.log(dates)
    assert departure.mean == pytest.approx(math.log(90) - logarithms.mean())
    assert departure.error == pytest.approx(logarithms.std(ddof=1) * math.sqrt(1 + 1 / 4))
    assert departure.freedom == 3


def test_two_earlier_dates_predict_nothing() -> None:
    assert departures([{"a": sample(1.0)}, {"a": sample(2.0)}, {"b": sample(1.0)}], {"a": sample(1.5)}) == {}


def test_earlier_dates_of_one_rounded_value_predict_no_interval() -> None:
    [departure] = departures([{"a": sample(5.0)}] * 3, {"a": sample(6.0)}).values()
    assert departure.error is None


def test_what_makes_a_whole_date_slower_cancels_in_speedups() -> None:
    before, after = Estimate(math.log(1.8), 0.01, 4), Estimate(math.log(1.8), 0.01, 4)
    assert ratio_changes({"a": before, "b": before}, {"a": after})["a"].mean == 0.0
    assert list(ratio_changes({"a": before}, {"b": after})) == []


@pytest.mark.parametrize("earlier_dates", [3, 8])
def test_departures_are_as_seldom_wrong_as_they_claim(earlier_dates: int) -> None:
    """Dates differ by 2 %, runs of a date by 0.5 %, and nothing changed: at most 5 % of studies may say so."""
    generator = np.random.default_rng(1)
    wrong = wrong_between_two = 0
    for _ in range(STUDIES):
        dates = []
        for _ in range(earlier_dates + 1):
            throughputs = {}
            for name in range(CONFIGURATIONS):
                date = generator.normal(0, 0.02)
                throughputs[str(name)] = Sample(np.exp(date + generator.normal(0, 0.005, RUNS)))
            dates.append(throughputs)
        *earlier, latest = dates
        wrong += _says_that_something_changed(departures(earlier, latest))
        wrong_between_two += _says_that_something_changed(changes(earlier[-1], latest))
    assert wrong / STUDIES < 0.05 + 3 * math.sqrt(0.05 * 0.95 / STUDIES)
    # Which is why the pages say what the intervals of two dates do not hold.
    assert wrong_between_two / STUDIES > 0.9


def _says_that_something_changed(log_ratios: dict[str, Estimate]) -> bool:
    return any(verdict.word in (FASTER, SLOWER) for verdict in verdicts(log_ratios).values())
