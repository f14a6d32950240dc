"""The physical model against its formulas by hand, and what measurements do not identify."""

import math
from dataclasses import replace

import pytest

from dlperf_study.metrics.statistics import Estimate
from dlperf_study.prediction.curves import STRONG, Curve, CurvePoint, Unit
from dlperf_study.prediction.exchange_cost import HIERARCHICAL, RING, TREE
from dlperf_study.prediction.physical_model import expected_largest, model_of, rate_error
from dlperf_study.prediction.prediction import Prediction, Refusal, predict
from dlperf_study.prediction.step_parts import StepParts

#: Seconds of computation, and for carrying all bytes once over a link.
COMPUTATION, CARRIED = 0.2, 0.1
#: Seconds of a round.
ROUND = 1e-3


def ring(ranks):
    """The exchange of a ring by hand."""
    return 2 * (ranks - 1) * ROUND + 2 * (ranks - 1) / ranks * CARRIED


def point(units, exchange, per_unit=1, hidden=0.5, computation=COMPUTATION, servers=0, **changes):
    """A size whose steps hide a share of their exchange; a device trains one sample in a step."""
    step = (
        COMPUTATION + changes.get("jitter_seconds", 0.0) + changes.get("input_seconds", 0.0) + (1 - hidden) * exchange
    )
    parts = StepParts(step, units * per_unit, 1, servers, computation, exchange_seconds=exchange or None, **changes)
    devices = units * per_unit
    return CurvePoint(units, devices, Estimate(math.log(devices / step)), servers, parts)


def curve(*points, **changes):
    return replace(Curve("made up", "test", Unit.NODE, tuple(points), identity="abc"), **changes)


def test_a_ring_is_told_from_the_exchanges_alone_of_two_sizes():
    model = model_of(curve(point(1, 0.0), point(2, ring(2)), point(4, ring(4))))
    assert (model.cost.round_seconds, model.cost.carried_seconds) == pytest.approx((ROUND, CARRIED))
    # 14 rounds, and 7/4 of the bytes: 189 ms, of which half are hidden.
    assert model.exchange_seconds(8) == pytest.approx(0.189)
    assert model.seconds(8) == pytest.approx(0.2945)
    assert model.rate(8) == pytest.approx(8 / 0.2945)
    assert model.rate(4) == pytest.approx(4 / (COMPUTATION + ring(4) / 2))


def test_a_computation_hides_no_more_than_its_backward_pass():
    model = model_of(curve(point(1, 0.0), point(2, ring(2)), point(4, ring(4))))
    # 126 rounds and 63/32 of the bytes: 322.9 ms, of which at most two thirds of 200 ms are hidden.
    assert model.seconds(64) == pytest.approx(COMPUTATION + 0.126 + 63 / 32 * CARRIED - 0.4 / 3)


def test_one_size_needs_a_latency_of_its_own():
    alone = curve(point(1, 0.0), point(2, ring(2)))
    assert "nodes=4" in model_of(alone)
    with_latency = curve(point(1, 0.0), point(2, ring(2), latency_seconds=2 * ROUND))
    model = model_of(with_latency)
    assert model.cost.is_assumed
    assert model.exchange_seconds(8) == pytest.approx(0.189)
    assert "nodes=2" in model_of(curve(point(1, 0.01, 4)))


@pytest.mark.parametrize(
    ("name", "rounds", "carried"),
    [
        (RING, lambda nodes: 2 * (4 * nodes - 1), lambda nodes: 2 * (4 * nodes - 1) / (4 * nodes)),
        (TREE, lambda nodes: 2 * math.log2(nodes), lambda nodes: 2.0),
        (HIERARCHICAL, lambda nodes: 2 * (nodes - 1), lambda nodes: 2 * (nodes - 1) / nodes),
    ],
)
def test_the_algorithm_is_that_which_fits(name, rounds, carried):
    inside, inside_latency = (0.0, 0.0) if name == RING else (0.01, 1e-4)

    def measured(nodes):
        # Four parts a step, each with its latency.
        latency = inside_latency + ROUND / 4 * rounds(nodes)
        return point(nodes, inside + ROUND * rounds(nodes) + CARRIED * carried(nodes), 4, latency_seconds=latency)

    model = model_of(curve(point(1, 0.01, 4, latency_seconds=1e-4), measured(2), measured(4)))
    assert model.cost.algorithm.name == name
    assert not model.cost.is_assumed
    assert model.exchange_seconds(64) == pytest.approx(inside + ROUND * rounds(64) + CARRIED * carried(64), rel=1e-3)


def test_without_a_computation_alone_that_of_a_size_which_exchanges_little_counts():
    def gathered(nodes):
        exchange = 3 * (4 * nodes - 1) * ROUND + (4 * nodes - 1) / (4 * nodes) * CARRIED
        return point(nodes, exchange, 4, computation=None, gathers=True)

    alone = point(1, 0.0, 4, computation=None)
    model = model_of(curve(alone, gathered(2), gathered(4)))
    assert model.seconds(8) == pytest.approx(COMPUTATION + (3 * 31 * ROUND + 31 / 32 * CARRIED) / 2)
    # All of a computation hides what is gathered in both passes.
    assert model.hiding_seconds == pytest.approx(COMPUTATION)
    assert "computation" in model_of(curve(gathered(2), gathered(4)))


def test_waiting_for_jitter_grows_as_the_largest_of_more_ranks():
    with_jitter = [point(nodes, ring(nodes) if nodes > 1 else 0.0, jitter_seconds=0.01) for nodes in (1, 2, 4)]
    model = model_of(curve(*with_jitter))
    assert model.jitter(256) == pytest.approx(0.01 * expected_largest(256) / expected_largest(4))
    # Tabulated expectations of the largest of 4 and of 100 normal values.
    assert (expected_largest(4), expected_largest(100)) == pytest.approx((1.029, 2.508), rel=0.02)


def of_servers(*trainers, **changes):
    """Two servers, whose links carry 50 ms of bytes of each trainer, each way."""
    points = [point(count, 0.02 + 2 * 0.05 * max(1, count / 2), hidden=0.0, servers=2) for count in trainers]
    return curve(*points, has_servers=True, **changes)


def test_servers_are_bounded_by_their_links(snapshot):
    [prediction] = predict([of_servers(1, 2, 4)], Unit.NODE, [8])
    assert isinstance(prediction, Prediction)
    [size] = prediction.sizes
    assert size.rate == pytest.approx(8 / (COMPUTATION + 0.02 + 2 * 0.05 * 4))
    assert size.rate_intervals[0.9] is None
    [refusal] = predict([of_servers(2)], Unit.NODE, [8])
    assert isinstance(refusal, Refusal)
    assert refusal.reason == snapshot
    # More trainers on the cores of one machine compute slower, with servers too.
    [refusal] = predict([of_servers(1, 2, 4, unit=Unit.DEVICE, on_gpus=False)], Unit.DEVICE, [8])
    assert isinstance(refusal, Refusal)
    assert "cores" in refusal.reason


def test_rates_alone_tell_of_servers_from_three_loads_on(snapshot):
    points = tuple(replace(each, parts=None) for each in of_servers(2, 4, 8).points)
    [prediction] = predict([of_servers(2, 4, 8, points=points)], Unit.NODE, [16])
    assert prediction.sizes[0].rate == pytest.approx(16 / (COMPUTATION + 0.02 + 2 * 0.05 * 8))
    [refusal] = predict([of_servers(2, 4, 8, points=points[:2])], Unit.NODE, [16])
    assert refusal.reason == snapshot


def test_trainers_that_do_not_wait_hide_in_each_other_what_servers_take():
    points = [point(count, 0.1 * max(1, count / 2), hidden=0.5, servers=2, is_asynchronous=True) for count in (1, 2, 4)]
    model = model_of(curve(*points, has_servers=True))
    # From 400 ms of pushes and pulls on, 16 trainers are as fast as servers allow and no computation counts.
    assert model.seconds(16) == pytest.approx(0.8)


def test_rates_and_a_fixed_batch_identify_nothing():
    rates = curve(*(replace(each, parts=None) for each in (point(1, 0.0), point(2, ring(2)))))
    assert "alone" in model_of(rates)
    assert "batch" in model_of(curve(point(1, 0.0), point(2, ring(2)), point(4, ring(4)), scaling=STRONG))


def test_exchanges_that_differ_between_runs_say_nothing_of_many_nodes():
    def measured(error):
        return curve(*(point(nodes, ring(nodes), exchange_error=error) for nodes in (2, 4)))

    assert rate_error(measured(0.001), 8) < 0.01
    [precise], [vague] = (predict([measured(error)], Unit.NODE, [64])[0].sizes for error in (0.001, 0.1))
    assert precise.model_rate is not None
    assert vague.model_rate is None
