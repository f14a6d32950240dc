"""The hand-made run: step 1.5 s, computation 1.0 s (rank 0), exchange 0.8 s (rank 1) of 4 MB on 2 devices."""

import pytest

from dlperf_study.analysis.communication import (
    bus_bandwidth,
    communication_of,
    computation_seconds,
    exposed_noise_seconds,
    exposed_seconds,
    load_balance,
    overlap,
    unclipped_exposed_seconds,
)
from tests.evidence_factory import GRADIENT_BYTES


def test_the_parts_of_a_step_are_those_of_the_slowest_rank(hand_made_run):
    found = communication_of(hand_made_run())
    assert found["computation_seconds"] == pytest.approx(1.0)
    assert found["exposed_seconds"] == pytest.approx(0.5)
    assert found["exchange_seconds"] == pytest.approx(0.8)


def test_overlap_is_the_hidden_share_of_the_pure_exchange(hand_made_run):
    assert overlap(hand_made_run()) == pytest.approx(1 - 0.5 / 0.8)


@pytest.mark.parametrize("devices", [2, 4])
def test_bus_bandwidth_is_that_of_nccl_tests(make_run, devices):
    times = {rank: {"exchange": [0.8, 0.8]} for rank in range(devices)}
    run = make_run(times, devices_per_node=devices, exchange_steps=2)
    assert bus_bandwidth(run) == pytest.approx(GRADIENT_BYTES / 0.8 * 2 * (devices - 1) / devices)


def test_bus_bandwidth_is_defined_for_an_all_reduce_only(hand_made_run):
    assert bus_bandwidth(hand_made_run(exchange="push_pull")) is None


def test_load_balance_is_mean_over_maximum_of_the_computation(hand_made_run):
    assert load_balance(hand_made_run()) == pytest.approx((1.0 + 0.8) / 2 / 1.0)


def test_where_nothing_is_exchanged_the_step_is_the_computation(make_run):
    run = make_run({0: {"training": [1.0, 2.0]}}, measured_steps=2)
    found = communication_of(run)
    assert (found["computation_seconds"], found["exposed_seconds"], found["load_balance"]) == (1.5, 0.0, 1.0)
    assert (found["exchange_seconds"], found["overlap"], found["bus_bandwidth"]) == (None, None, None)


def test_exposed_communication_is_never_below_zero(make_run):
    times = {"training": [0.5, 0.5], "computation": [0.6, 0.6]}
    run = make_run({0: times, 1: times}, devices_per_node=2, measured_steps=2, computation_steps=2)
    assert unclipped_exposed_seconds(run) == pytest.approx(-0.1)
    assert exposed_seconds(run) == 0.0
    assert overlap(run) is None


def test_the_noise_is_two_standard_errors_of_the_difference(hand_made_run):
    training, computation = 1.0 / 4, 0.02 / 2
    assert exposed_noise_seconds(hand_made_run()) == pytest.approx(2 * (training + computation) ** 0.5)


def test_an_unmeasured_computation_is_missing_not_zero(hand_made_run):
    run = hand_made_run()
    for log in run.ranks:
        del log.windows["computation"]
    assert computation_seconds(run) is None
    assert exposed_seconds(run) is None
    assert overlap(run) is None
    assert load_balance(run) is None
