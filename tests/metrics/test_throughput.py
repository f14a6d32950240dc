"""The hand-made run: 2 devices, batch 32 each, 4 steps; the slowest rank needs 1 + 1 + 1 + 3 = 6 s."""

import pytest

from dlperf_study.metrics.step_times import (
    drain_seconds,
    final_loss,
    step_percentile,
    step_seconds,
    step_variation,
    warmup_slowdown,
)
from dlperf_study.metrics.throughput import device_token_throughput, mean_step_throughput, slowest_training, throughput
from tests.evidence_factory import Recipe


def test_throughputs_and_steps_are_those_of_the_slowest_ranks_window(hand_made_run, make_run):
    run = hand_made_run()
    assert throughput(run) == pytest.approx(64 * 4 / 6.0)
    assert mean_step_throughput(run) == pytest.approx((64 + 64 + 64 + 64 / 3) / 4)
    assert step_seconds(run) == pytest.approx(1.5)
    assert step_variation(slowest_training(run).step_seconds) == pytest.approx(1.0 / 1.5)
    assert device_token_throughput(run) is None
    run = hand_made_run(sequence_length=128)
    assert device_token_throughput(run) == pytest.approx(64 * 128 * 4 / 6.0 / 2)
    single_step = make_run(measured_steps=1)
    assert step_variation(slowest_training(single_step).step_seconds) is None


def test_the_warmup_slowdown_compares_the_first_step_with_the_median_measured_one(make_run):
    run = make_run({0: {"warmup": [6.0, 1.0, 1.0, 1.0, 1.0], "training": [1.0, 2.0, 3.0]}}, measured_steps=3)
    assert warmup_slowdown(run) == pytest.approx(3.0)
    assert warmup_slowdown(make_run(warmup_steps=0)) is None


def test_drain_and_loss_are_taken_from_the_ranks(make_run):
    run = make_run(recipe=Recipe(drain_seconds=0.25, final_loss=1.5), devices_per_node=2)
    assert drain_seconds(run) == 0.25
    assert final_loss(run) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("communication", "median"), [("all_reduce", 1.5), ("synchronous_push_pull", 1.5), ("push_pull", 1.0)]
)
def test_the_median_step_is_that_of_the_slowest_rank_or_of_all_ranks_where_none_waits(
    hand_made_run, communication, median
):
    run = hand_made_run(communication, training=(0.5, 3.0, 1.0, 1.0))
    assert step_percentile(run, 50) == pytest.approx(median)


@pytest.mark.parametrize(("steps", "known"), [(19, [50]), (20, [50, 95]), (99, [50, 95]), (100, [50, 95, 99])])
def test_a_percentile_needs_a_step_beyond_it(make_run, steps, known):
    run = make_run(measured_steps=steps, devices_per_node=2)
    assert [percentile for percentile in (50, 95, 99) if step_percentile(run, percentile) is not None] == known
