"""Predictions of published series against what was measured: errors, and how many the intervals hold."""

import numpy as np
import pytest

from dlperf_study.prediction.curves import Unit, published_curves
from dlperf_study.prediction.intervals import (
    cases_of,
    is_testable,
    largest_growth,
    relative_width,
    scores_of,
)
from dlperf_study.prediction.node_ring import predicted_rate

#: DLPerf's sizes: a node of 8 devices, 2 and 4 of them, and one device.
_NODES, _ONE_DEVICE = [1, 2, 4], 1


@pytest.fixture(scope="module")
def dlperf():
    """The largest size of each series of DLPerf that was measured on 1, 8, 16 and 32 devices."""
    curves = [
        curve
        for curve in published_curves()
        if curve.origin.startswith("dlperf") and curve.unit == Unit.NODE and curve.all_points[0].devices == _ONE_DEVICE
    ]
    curves = [curve for curve in curves if [point.units for point in curve.points] == _NODES]
    return list(cases_of(curves))


def test_half_of_the_series_of_dlperf_are_predicted_within_three_per_cent(dlperf):
    errors = [abs(predicted_rate(case.curve, 4) / case.target.rate - 1) for case in dlperf]
    assert len(errors) == 98
    assert np.median(errors) < 0.027
    assert np.quantile(errors, 0.9) < 0.095
    same_rate = [abs(2 * case.curve.last.rate / case.target.rate - 1) for case in dlperf]
    assert np.quantile(same_rate, 0.9) > 0.15


@pytest.mark.parametrize(("share", "least", "most"), [(0.5, 0.4, 0.6), (0.9, 0.85, 0.95)])
def test_intervals_hold_what_they_say_of_sources_that_are_left_out(dlperf, share, least, most):
    held = [case.score <= scores_of(Unit.NODE, 2.0, case.curve.origin).quantile(share) for case in dlperf]
    assert least <= np.mean(held) <= most


def test_intervals_inside_a_node_hold_what_they_say():
    curves = [curve for curve in published_curves() if curve.unit == Unit.DEVICE and is_testable(curve)]
    for growth in (2.0, 4.0):
        cases = [case for case in cases_of(curves) if case.growth == growth]
        held = [case.score <= scores_of(Unit.DEVICE, growth, case.curve.origin).quantile(0.9) for case in cases]
        assert 0.85 <= np.mean(held) <= 0.96


def test_claims_reach_as_far_as_enough_series_of_enough_sources_do():
    assert largest_growth(Unit.NODE) == 2.0
    assert largest_growth(Unit.DEVICE) == 4.0
    assert largest_growth(Unit.WORKER) == 1.0
    assert scores_of(Unit.NODE, 100.0).quantile(0.5) is None


def test_a_score_is_an_error_in_units_of_the_width(dlperf):
    case = dlperf[0]
    error = abs(np.log(predicted_rate(case.curve, case.target.units) / case.target.rate))
    assert case.score == pytest.approx(error / relative_width(case.curve))
