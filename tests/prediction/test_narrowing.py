"""What a further measurement would make of an interval, against what it makes of it."""

import math
from dataclasses import replace

import pytest

from dlperf_study.metrics.statistics import Estimate
from dlperf_study.prediction.curves import STRONG, Unit
from dlperf_study.prediction.narrowing import compute_half_width, narrowings
from dlperf_study.prediction.node_ring import predicted_throughput
from dlperf_study.prediction.prediction import predict
from tests.prediction.curve_factory import curve

THROUGHPUTS = {1: 8 / 1.0, 2: 16 / 1.2, 4: 32 / 1.3}


def narrowed(measured, units):
    [prediction] = predict([measured], Unit.NODE, [units])
    [size] = prediction.sizes
    return {entry.measurement: entry.half_width for entry in narrowings(prediction, size)}


def test_a_size_between_narrows_the_interval_as_it_does_when_measured():
    measured = curve(THROUGHPUTS, error=0.001)
    results = narrowed(measured, 8)
    further = curve({**THROUGHPUTS, 6: predicted_throughput(measured, 6)}, error=0.001)
    # Its own error is that of the others, and not that of the prediction.
    assert results["6 nodes"] == pytest.approx(compute_half_width(further, 8), rel=1e-6)
    assert results["6 nodes"] < compute_half_width(measured, 8)


def test_more_runs_are_named_where_runs_differ_more_than_series():
    noisy, exact = (curve(THROUGHPUTS, error=error) for error in (0.2, 1e-6))
    first, *rest = narrowed(noisy, 8)
    assert first == "3 more runs on 4 nodes"
    # Those of the smallest size would change little.
    assert rest == ["6 nodes"]
    # Six runs instead of three: the error is smaller by the root of two, and its t quantile is that of five.
    more = noisy.points[-1]
    more = replace(more, log_throughput=Estimate(more.log_throughput.mean, 0.2 / math.sqrt(2), 5.0))
    assert narrowed(noisy, 8)[first] == pytest.approx(
        compute_half_width(replace(noisy, points=(*noisy.points[:-1], more)), 8)
    )
    assert next(iter(narrowed(exact, 8))) == "6 nodes"


def test_more_runs_of_the_smallest_size_are_named_where_its_runs_alone_differ():
    measured = curve(THROUGHPUTS, error=1e-6)
    noisy = curve(THROUGHPUTS, error=1.0).points[0]
    assert list(narrowed(measured.replace_point(measured.points[0], noisy), 8)) == ["6 nodes", "3 more runs on 1 node"]


def test_a_size_without_an_interval_may_get_one():
    assert list(narrowed(curve(THROUGHPUTS), 16)) == ["8 nodes"]
    # Nothing within reach gives one to 64 nodes, or tests a fixed batch.
    assert narrowed(curve(THROUGHPUTS), 64) == {}
    assert narrowed(curve(THROUGHPUTS, scaling=STRONG), 8) == {}
    assert narrowed(curve(THROUGHPUTS), 4) == {}
