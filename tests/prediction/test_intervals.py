"""The intervals of predictions: each laboratory counts once, nine are needed, and none tests itself."""

import math

import pytest

from dlperf_study.metrics.statistics import MANY, Estimate
from dlperf_study.prediction import intervals
from dlperf_study.prediction.curves import STRONG, Unit, published_curves
from dlperf_study.prediction.node_ring import predicted_throughput
from tests.prediction.curve_factory import curve

TWO_NODES = curve({1: 100.0, 2: 190.0})


@pytest.fixture
def tested_by(monkeypatch):
    """Let published cases be those of some laboratories: one that grew to twice the nodes, of each."""

    def _tested_by(*laboratories):
        cases = []
        for position, name in enumerate(laboratories):
            measured = curve({1: 100.0, 2: 190.0, 4: 300.0 + position}, laboratory=name)
            cases.append(intervals.Case(measured.until(2), measured.last))
        monkeypatch.setattr(intervals, "published_cases", lambda: tuple(cases))
        intervals.scores_by_laboratory.cache_clear()
        return cases

    yield _tested_by
    intervals.scores_by_laboratory.cache_clear()


def test_a_laboratory_weighs_the_same_however_many_series_it_has():
    others = {f"laboratory {number}": (float(number),) for number in range(1, 11)}
    # Ten laboratories and the new one: 90 % of the eleven are 9.9, so all of the tenth but a tenth of it.
    assert intervals.quantile(others) == 10
    assert intervals.quantile({**others, "laboratory 10": (*[5.0] * 99, 10.0)}) == 9
    assert intervals.quantile({**others, "laboratory 10": (*[5.0] * 4, 10.0)}) == 10
    # With nine laboratories it is the largest score.
    assert intervals.quantile({f"laboratory {number}": (1.0, float(number)) for number in range(9)}) == 8


def test_eight_laboratories_give_no_interval_and_nine_do(tested_by):
    names = [f"laboratory {number}" for number in range(intervals.MIN_LABORATORIES)]
    cases = tested_by(*names)
    assert intervals.tested_score(TWO_NODES, 4) == pytest.approx(max(case.score for case in cases))
    tested_by(*names[:-1])
    assert "8 of the 9 laboratories" in intervals.tested_score(TWO_NODES, 4)


def test_sources_of_one_laboratory_count_once_and_not_for_itself(tested_by):
    tested_by(*["one cluster"] * 102, "another one")
    assert "2 of the 9 laboratories" in intervals.tested_score(TWO_NODES, 4)
    tested_by(*(f"laboratory {number}" for number in range(intervals.MIN_LABORATORIES)))
    own = curve({1: 100.0, 2: 190.0}, laboratory="laboratory 3")
    assert "8 of the 9 laboratories" in intervals.tested_score(own, 4)


def test_the_reason_is_that_of_what_was_measured():
    assert "16 times" in intervals.tested_score(TWO_NODES, 32)
    assert "fixed" in intervals.tested_score(curve({1: 100.0, 2: 190.0}, scaling=STRONG), 4)
    assert "nodes are unknown" in intervals.tested_score(curve({1: 100.0, 2: 190.0}, Unit.WORKER), 4)
    assert "smaller" in intervals.tested_score(TWO_NODES, 1)


def test_published_series_of_enough_laboratories_reach_twice_the_size_without_servers():
    for unit in (Unit.NODE, Unit.DEVICE):
        assert len(intervals.scores_by_laboratory(unit, 2.0)) > intervals.MIN_LABORATORIES
        assert len(intervals.scores_by_laboratory(unit, 4.0)) < intervals.MIN_LABORATORIES
    assert all(measured.laboratory for measured in published_curves())
    assert not any(case.curve.has_servers for case in intervals.published_cases())


def test_a_score_is_an_error_in_units_of_the_width():
    case = intervals.published_cases()[0]
    error = abs(math.log(predicted_throughput(case.curve, case.target.units) / case.target.throughput))
    assert case.score == pytest.approx(error / intervals.relative_width(case.curve))


def test_the_error_of_measured_throughputs_is_added_in_quadrature():
    width = intervals.relative_width(TWO_NODES)
    exact = intervals.interval(TWO_NODES, 4.0, Estimate(0.0, None, MANY))
    assert math.log(exact.high) == pytest.approx(4 * width)
    # The t quantile of 95 % with two degrees of freedom.
    noisy = intervals.interval(TWO_NODES, 4.0, Estimate(0.0, 0.1, 2.0))
    assert math.log(noisy.high) == pytest.approx(math.hypot(4 * width, 0.1 * 2.92), rel=1e-3)
