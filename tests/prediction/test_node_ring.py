"""The ring of nodes against its formula by hand."""

import math

import pytest

from dlperf_study.prediction.curves import STRONG
from dlperf_study.prediction.intervals import relative_width
from dlperf_study.prediction.node_ring import predicted_log_throughput, predicted_throughput
from tests.prediction.curve_factory import curve


def test_a_step_grows_with_the_share_of_a_ring():
    # By hand: t(4) = 1.2 + (1.2 - 1.0) x (3/4 - 1/2) / (1/2) = 1.3 s; t(8) = 1.2 + 0.2 x (7/8 - 1/2) x 2 = 1.35 s.
    weak = curve({1: 8 / 1.0, 2: 16 / 1.2})
    assert predicted_throughput(weak, 4) == pytest.approx(32 / 1.3)
    assert predicted_throughput(weak, 8) == pytest.approx(64 / 1.35)
    # What was measured is on the curve.
    assert predicted_throughput(weak, 2) == pytest.approx(weak.last.throughput)


def test_a_step_never_becomes_shorter_by_an_exchange():
    assert predicted_throughput(curve({1: 8.0, 2: 17.0}), 4) == pytest.approx(34.0)


def test_of_a_fixed_batch_the_computation_is_shared():
    # 1 s of computation on one node, and a transfer of 0.4 s x (m - 1)/m: 0.7 s on two, 0.55 s on four nodes.
    strong = curve({1: 1.0, 2: 1 / 0.7}, scaling=STRONG)
    assert predicted_throughput(strong, 4) == pytest.approx(1 / 0.55)
    linear = curve({1: 1.0, 2: 2.0}, scaling=STRONG)
    assert predicted_throughput(linear, 16) == pytest.approx(16.0)


def test_the_error_of_measured_throughputs_is_in_the_prediction():
    # t(4) = 1.5 t(2) - 0.5 t(1): the log throughput follows those of two nodes with 1.8/1.3, of one with -0.5/1.3.
    weak = curve({1: 8 / 1.0, 2: 16 / 1.2}, error=0.01)
    error = 0.01 * math.hypot(1.8 / 1.3, 0.5 / 1.3)
    estimate = predicted_log_throughput(weak, 4)
    assert estimate.error == pytest.approx(error, rel=0.01)
    assert estimate.freedom == 2
    # Relative to the first point, its throughput counts with -0.5/1.3 of the prediction and with -1 of the denominator.
    relative = predicted_log_throughput(weak, 4, relative_to=weak.points[0])
    assert relative.factor == pytest.approx(32 / 1.3 / 8)
    assert relative.error == pytest.approx(0.01 * math.hypot(1.8 / 1.3, 0.5 / 1.3 + 1), rel=0.01)
    assert predicted_log_throughput(curve({1: 8.0, 2: 13.0}), 4).error is None


def test_the_width_grows_with_what_the_last_doubling_added():
    assert relative_width(curve({1: 8.0, 2: 16.0})) == pytest.approx(0.02)
    # By hand: (1.25 - 1.0) / 1.25 = 0.2 of a step.
    assert relative_width(curve({1: 8 / 1.0, 2: 16 / 1.25})) == pytest.approx(0.02 + 0.3 * 0.2)
    assert relative_width(curve({1: 8 / 1.0, 4: 32 / 1.25})) == pytest.approx(0.02 + 0.3 * 0.1)
    assert relative_width(curve({1: 1.0, 2: 2.0}, scaling=STRONG)) == pytest.approx(0.02)
