"""The hand-made run: step 1.5 s, computation 1.0 s (rank 0), communication 0.8 s (rank 1) of 4 MB on 2 devices."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem

from dlperf_study.dataset.run_table import run_row
from dlperf_study.metrics.communication import (
    bus_bandwidth,
    communication_cost,
    exposed_communication_seconds,
    exposed_error_seconds,
    jitter_seconds,
    link_bandwidth,
    negative_communication,
    overlap,
    unexplained_waiting_seconds,
)
from dlperf_study.metrics.computation import (
    ERRORS,
    LARGEST_CORRELATION_OF_FEW,
    compute_seconds,
    load_balance,
    mean_error,
    rank_computations,
    rank_waiting_seconds,
)
from dlperf_study.metrics.process_resources import shared_cores
from dlperf_study.metrics.throughput import makespan_seconds, slowest_training, sum_of_rank_throughputs, throughput
from tests.evidence_factory import GRADIENT_BYTES, Recipe
from tests.metrics.test_steady_state import autoregressive
from tests.run_fixtures import computation

TWO = {"devices_per_node": 2}


def test_the_parts_of_a_step_are_those_of_the_slowest_rank(hand_made_run):
    run = hand_made_run()
    columns = run_row(run)
    assert columns["compute_seconds"] == pytest.approx(1.0)
    assert columns["exposed_communication_seconds"] == pytest.approx(0.5)
    assert columns["communication_seconds"] == pytest.approx(0.8)
    assert overlap(run) == pytest.approx(1 - 0.5 / 0.8)
    assert load_balance(run) == pytest.approx((1.0 + 0.8) / 2 / 1.0)
    # The halves of the computation differ by twice that.
    assert [rank.error for rank in rank_computations(run)] == pytest.approx([0.1, 0.1])
    assert exposed_error_seconds(run) == pytest.approx(np.hypot(mean_error(np.array([1.0, 1.0, 1.0, 3.0])), 0.1))


def waiting(run, waits):
    """Return the run with the seconds that the steps of each rank wait for their batches, by rank and window."""
    for rank, of_windows in waits.items():
        for name, seconds in of_windows.items():
            object.__setattr__(run.ranks[rank].windows[name], "input_seconds", np.array(seconds))
    return replace(run)


@pytest.mark.parametrize(
    ("of_first", "of_second", "computation_of_second", "expected"),
    [
        # Both wait: the step is longer by as much.
        (0.2, 0.2, 0.8, 0.2),
        # The rank that computes less waits while the other one computes.
        (0.0, 0.2, 0.8, 0.0),
        (0.0, 0.3, 0.8, 0.1),
        (0.0, 0.0, 0.8, 0.0),
    ],
)
def test_input_is_by_how_much_waiting_for_batches_lengthens_the_step(
    make_run, of_first, of_second, computation_of_second, expected
):
    step = 1.0 + expected + 0.1
    times = {
        rank: {"training": [step, step], **computation([seconds + wait], [seconds + wait])}
        for rank, seconds, wait in ((0, 1.0, of_first), (1, computation_of_second, of_second))
    }
    run = make_run(times, measured_steps=2, compute_only_steps=2, **TWO)
    names = ("computation_before", "computation_after")
    waits = {
        rank: {"training": [wait, wait], names[0]: [wait], names[1]: [wait]}
        for rank, wait in ((0, of_first), (1, of_second))
    }
    columns = run_row(waiting(run, waits))
    assert columns["compute_seconds"] == pytest.approx(1.0)
    assert columns["input_seconds"] == pytest.approx(expected, abs=1e-12)
    assert columns["exposed_communication_seconds"] == pytest.approx(0.1)
    assert columns["load_balance"] == pytest.approx(0.9)


def test_a_step_of_one_process_is_computation_and_input(make_run):
    steps, waits = [0.52, 0.52, 0.51], [0.16, 0.12, 0.06]
    columns = run_row(waiting(make_run({0: {"training": steps}}, measured_steps=3), {0: {"training": waits}}))
    assert columns["compute_seconds"] == pytest.approx(1.21 / 3)
    assert columns["input_seconds"] == pytest.approx(0.34 / 3)
    # Not a rounding error, which a table would show.
    assert columns["exposed_communication_seconds"] == 0


def test_a_program_whose_computation_is_unknown_waits_at_most_as_long_as_its_slowest_rank(make_run):
    steps = [0.5, 0.5, 0.5, 0.5]
    run = make_run({rank: {"training": steps} for rank in (0, 1)}, measured_steps=4, compute_only_steps=0, **TWO)
    waits = {0: {"training": [0.1, 0.1, 0.1, 0.1]}, 1: {"training": [0.2, 0.3, 0.2, 0.3]}}
    recorded = {"recorded_by": "recorder", "scope": "rank"}
    for log in run.ranks:
        log.facts.update(recorded)
        object.__setattr__(log.windows["training"], "has_input", True)
    columns = run_row(waiting(run, waits))
    assert columns["input_seconds"] == pytest.approx(0.25)
    assert columns["compute_seconds"] is columns["exposed_communication_seconds"] is None


def test_the_input_throughput_is_that_of_all_ranks_at_the_pace_of_the_slowest(make_run):
    times = {0: {"input": [0.5, 0.5]}, 1: {"input": [0.5, 1.5]}}
    run = make_run(times, Recipe(batch_seconds=0.1), input_only_steps=2, batch_per_device=8, **TWO)
    assert run_row(run)["input_throughput"] == pytest.approx(16 / 1.0)
    assert run_row(make_run(**TWO, seed=1))["input_throughput"] is None


def test_a_drift_through_the_run_is_no_communication(make_run):
    """Each step takes 10 ms longer than the one before it, also without communication, as on a warming machine."""
    seconds = [1 + 0.01 * step for step in range(12)]
    times = {"training": seconds[3:9], **computation(seconds[:3], seconds[9:])}
    run = make_run({0: times, 1: times}, measured_steps=6, compute_only_steps=6, **TWO)
    assert exposed_communication_seconds(run) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("devices", [2, 4])
def test_bus_bandwidth_is_that_of_nccl_tests(make_run, devices):
    times = {rank: {"communication": [0.8, 0.8]} for rank in range(devices)}
    run = make_run(times, devices_per_node=devices, communication_only_steps=2)
    assert bus_bandwidth(run) == pytest.approx(GRADIENT_BYTES / 0.8 * 2 * (devices - 1) / devices)


def test_bus_bandwidth_is_defined_for_a_measured_all_reduce_only(hand_made_run, make_run):
    assert bus_bandwidth(hand_made_run(communication="push_pull")) is None
    assert bus_bandwidth(make_run(communication_only_steps=0, **TWO)) is None


@pytest.mark.parametrize(("step", "is_diagnosed"), [(0.75, False), (0.65, True)])
def test_a_difference_of_three_standard_errors_is_no_chance(make_run, step, is_diagnosed):
    """Computation takes 1 s with an error of 0.1 s, because its halves differ by twice that."""
    times = {"training": [step, step], **computation([0.9], [1.1])}
    run = make_run({0: times, 1: times}, measured_steps=2, compute_only_steps=2, **TWO)
    assert bool(list(negative_communication(run))) == is_diagnosed


@pytest.mark.parametrize(("repetition", "expected"), [(1, 1.075 - 0.05), (2, 1.075 - 0.1)])
def test_the_rank_that_is_slowest_in_one_half_is_judged_by_the_other(make_run, repetition, expected):
    """Before, rank 0 is slower, and after, rank 1: neither is slower by more than chance."""
    times = {0: computation([1.2], [1.0]), 1: computation([1.0], [1.1])}
    run = replace(make_run(times, compute_only_steps=2, **TWO), repetition=repetition)
    assert compute_seconds(run) == pytest.approx(expected)
    assert load_balance(run) == pytest.approx(1.075 / expected)
    # Every step is as long as the slower of the two: 1.15 s in the mean.
    assert jitter_seconds(run) == pytest.approx(1.15 - expected)


@pytest.mark.parametrize("repetition", [1, 2])
@pytest.mark.parametrize("stalled", [[[10.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0], [1.0, 10.0, 1.0]]])
def test_a_rare_stall_chooses_no_rank(make_run, repetition, stalled):
    """Rank 1 is slower by 0.2 s in all of its steps, and rank 0 stalls once, in the choosing or the judging half."""
    times = {0: computation(*stalled), 1: computation([1.2, 1.2, 1.2], [1.2, 1.2, 1.2])}
    run = replace(make_run(times, compute_only_steps=6, **TWO), repetition=repetition)
    mean, excess = ((10.0 + 5 * 1.0) / 6 + 1.2) / 2, 1.2 - (1.0 + 1.2) / 2
    assert compute_seconds(run) == pytest.approx(mean + excess)
    assert load_balance(run) == pytest.approx(mean / (mean + excess))
    # What the stalled steps take is waited for: the mean of the slowest rank of each step is the computation and this.
    assert jitter_seconds(run) == pytest.approx((10.0 + 5 * 1.2) / 6 - mean - excess)


def test_the_wait_of_the_slowest_rank_is_without_luck_too(make_run):
    """Each rank waits in one half only, so that no rank waits longer than the other by more than chance."""
    times = {rank: {"training": [1.2, 1.2], **computation([1.0], [1.0])} for rank in (0, 1)}
    run = make_run(times, measured_steps=2, compute_only_steps=2, **TWO)
    waits = {0: {"training": [0.2, 0.0]}, 1: {"training": [0.0, 0.2]}}
    assert run_row(waiting(run, waits))["input_seconds"] == pytest.approx(0.1 - 0.1)


def test_where_nothing_is_exchanged_the_step_is_the_computation(make_run):
    run = make_run({0: {"training": [1.0, 2.0]}}, measured_steps=2)
    columns = run_row(run)
    assert (columns["compute_seconds"], columns["exposed_communication_seconds"], columns["load_balance"]) == (
        1.5,
        0.0,
        1.0,
    )
    assert (columns["communication_seconds"], columns["overlap"], columns["bus_bandwidth"]) == (None, None, None)
    assert columns["jitter_seconds"] is None


def test_a_step_faster_than_its_computation_has_negative_exposed_communication(make_run):
    """Clipped, the mean over runs of a well-hidden communication would be above its true value."""
    times = {"training": [0.5, 0.5], **computation([0.6], [0.6])}
    run = make_run({0: times, 1: times}, measured_steps=2, compute_only_steps=2, **TWO)
    assert exposed_communication_seconds(run) == pytest.approx(-0.1)
    assert overlap(run) > 1


def test_an_unmeasured_computation_is_missing_not_zero(hand_made_run):
    run = hand_made_run()
    for log in run.ranks:
        del log.windows["computation_before"], log.windows["computation_after"]
    columns = run_row(run)
    parts = ("compute_seconds", "input_seconds", "exposed_communication_seconds", "jitter_seconds")
    for name in (*parts, "overlap", "load_balance"):
        assert columns[name] is None, name
    assert exposed_error_seconds(run) == mean_error(slowest_training(run).step_seconds)
    assert rank_waiting_seconds(run) == 0.0


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_steps_that_resemble_each_other_make_no_false_difference(make_run, correlation):
    """Training and computation take equally long; their error says so in at least 95 of 100 runs."""
    generator = np.random.default_rng(1)
    run = make_run(measured_steps=20, **TWO)
    false = 0
    for _ in range(400):
        steps = autoregressive(generator, 40, 0.01, correlation)
        windows = {"training": steps[10:30], "computation_before": steps[:10], "computation_after": steps[30:]}
        for log in run.ranks:
            for name, seconds in windows.items():
                object.__setattr__(log.windows[name], "step_seconds", seconds)
                object.__setattr__(log.windows[name], "input_seconds", np.zeros_like(seconds))
                object.__setattr__(log.windows[name], "seconds", float(seconds.sum()))
        # What is computed of a run is kept, so that a run with other windows must be another run.
        changed = replace(run)
        false += exposed_communication_seconds(changed) < -ERRORS * exposed_error_seconds(changed)
    assert false <= 20


def test_the_error_of_a_mean_of_few_or_equal_steps():
    assert mean_error(np.array([1.0])) == mean_error(np.array([1.0, 1.0, 1.0])) == 0.0
    assert mean_error(np.array([1.0, 1.2])) == pytest.approx(sem([1.0, 1.2]))


@pytest.mark.parametrize("communication", ["all_reduce", "synchronous_push_pull"])
def test_waiting_for_jitter_is_split_off(make_run, communication):
    """Ranks are equally fast on average, but never slow in the same step: each step waits 0.1 s for one of them."""
    times = {
        0: {"training": [1.3, 1.3], **computation([1.1, 0.9], [1.1, 0.9]), "communication": [0.4, 0.4]},
        1: {"training": [1.3, 1.3], **computation([0.9, 1.1], [0.9, 1.1]), "communication": [0.4, 0.4]},
    }
    recipe = Recipe(communication=communication)
    run = make_run(times, recipe=recipe, measured_steps=2, compute_only_steps=4, communication_only_steps=2, **TWO)
    assert exposed_communication_seconds(run) == pytest.approx(0.3)
    assert jitter_seconds(run) == run_row(run)["jitter_seconds"] == pytest.approx(0.1)
    assert overlap(run) == pytest.approx(1 - 0.2 / 0.4)


def test_a_slower_rank_is_no_jitter(make_run):
    slow, fast = computation([1.2, 1.3], [1.2, 1.3]), computation([0.9, 1.0], [0.9, 1.0])
    run = make_run({0: slow, 1: fast}, compute_only_steps=4, **TWO)
    assert jitter_seconds(run) == pytest.approx(0)


def test_with_a_server_nobody_waits_and_with_a_sharded_classifier_nobody_sees_it(make_run):
    assert jitter_seconds(make_run(recipe=Recipe(communication="push_pull"), **TWO)) == 0.0
    sharded = make_run(classifier="sharded", **TWO)
    assert (jitter_seconds(sharded), overlap(sharded)) == (None, None)


@pytest.mark.parametrize(
    ("threads", "helpers", "cores", "given"), [(1, 1, 4, True), (1, 1, 3, False), (2, 0, 3, False)]
)
def test_overlap_is_not_given_where_threads_share_cores(make_run, threads, helpers, cores, given):
    recipe = Recipe(communication_threads=helpers, cores=cores)
    run = make_run(recipe=recipe, threads_per_device=threads, **TWO)
    assert (overlap(run) is not None) == given
    assert shared_cores(run) == ("" if given else f"4 threads of ranks, communication and servers share {cores} cores")


def test_a_larger_exchange_that_is_faster_has_no_bandwidth(make_run):
    fast = {"communication": [0.0005] * 10}
    recipe = Recipe(latency_seconds=0.002, communication_seconds=0.042, noise=0.0)
    run = make_run({0: fast, 1: fast}, recipe=recipe, **TWO)
    assert communication_cost(run).seconds_per_byte < 0
    assert link_bandwidth(run) is None
    assert bus_bandwidth(run) == pytest.approx(GRADIENT_BYTES / 0.0005)


def test_a_drain_belongs_to_the_time_of_the_window(make_run):
    run = make_run(recipe=Recipe(communication="push_pull", drain_seconds=0.5, noise=0.0), measured_steps=10, **TWO)
    assert makespan_seconds(run) == pytest.approx(10 * 0.09 + 0.5)
    assert throughput(run) == pytest.approx(2 * 32 * 10 / 1.4)


def test_asynchronous_trainers_have_the_throughput_of_the_servers_too(make_run):
    """One trainer ends after 2 s and one after 4 s: together they push more than the makespan says."""
    times = {0: {"training": [1.0, 1.0]}, 1: {"training": [2.0, 2.0]}}
    run = make_run(times, recipe=Recipe(communication="push_pull"), measured_steps=2, **TWO)
    assert throughput(run) == pytest.approx(2 * 32 * 2 / 4)
    assert sum_of_rank_throughputs(run) == pytest.approx(32 * 2 / 2 + 32 * 2 / 4)
    assert sum_of_rank_throughputs(make_run(devices_per_node=4)) is None


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.5, 0.99])
@pytest.mark.parametrize("count", [5, 30])
def test_the_error_of_a_mean_is_widened_by_the_corrected_correlation_of_neighbours(correlation, count):
    steps = autoregressive(np.random.default_rng(3), count, 0.01, correlation)
    centred = steps - steps.mean()
    neighbours = np.correlate(centred, centred, "full")[count] / np.correlate(centred, centred)[0]
    corrected = np.clip(neighbours + (1 + 3 * neighbours) / count, 0, LARGEST_CORRELATION_OF_FEW)
    assert mean_error(steps) == pytest.approx(sem(steps) * np.sqrt((1 + corrected) / (1 - corrected)))


def test_the_error_of_a_computation_is_that_of_the_mean_of_its_halves(make_run):
    """The halves have the same mean, and steps that differ."""
    before, after = [0.9, 1.1, 1.0, 0.9, 1.1], [1.3, 0.7, 1.0, 0.7, 1.3]
    run = make_run({0: computation(before, after)}, compute_only_steps=10, **TWO)
    [first, _] = rank_computations(run)
    assert first.error == pytest.approx(np.hypot(mean_error(np.array(before)), mean_error(np.array(after))) / 2)
    assert first.error > 0


def test_a_step_waits_longer_than_the_exchange_only_by_what_is_exposed_beyond_it(hand_made_run):
    assert unexplained_waiting_seconds(hand_made_run()) == 0.0
    run = hand_made_run(training=(2.0, 2.0, 2.0, 2.0), seed=1)
    assert unexplained_waiting_seconds(run) == pytest.approx(2.0 - 1.0 - 0.8)
    for log in run.ranks:
        del log.windows["communication"]
    assert unexplained_waiting_seconds(run) == 0.0


def test_the_fastest_rank_waits_for_the_slowest_where_ranks_wait(hand_made_run):
    assert rank_waiting_seconds(hand_made_run()) == pytest.approx(1.0 - 0.8)
    assert rank_waiting_seconds(hand_made_run(communication="push_pull", seed=1)) == 0.0
    assert rank_waiting_seconds(hand_made_run(communication="synchronous_push_pull", seed=2)) == pytest.approx(
        1.0 - 0.8
    )


@pytest.mark.parametrize("devices", [2, 4])
def test_the_cost_of_an_exchange_is_a_weighted_fit(make_run, devices):
    run = make_run(recipe=Recipe(noise=0.05), devices_per_node=devices)
    names = [name for name in run.ranks[0].windows if name.startswith("communication")]
    slowest = [max((log.windows[name] for log in run.ranks), key=lambda window: window.seconds) for name in names]
    seconds = np.array([window.mean_seconds for window in slowest])
    errors = np.maximum([mean_error(window.step_seconds) for window in slowest], 0.01 * seconds)
    sizes = np.array([window.bytes for window in slowest], dtype=float)
    per_byte, latency = np.polyfit(sizes, seconds, 1, w=1 / errors)
    cost = communication_cost(run)
    assert (cost.latency_seconds, cost.seconds_per_byte) == pytest.approx((latency, per_byte))
    assert link_bandwidth(run) == pytest.approx(2 * (devices - 1) / devices / per_byte)


@pytest.mark.parametrize(("kept", "has_cost"), [(3, True), (2, False)])
def test_three_sizes_have_a_cost_and_two_have_none(make_run, kept, has_cost):
    run = make_run(recipe=Recipe(noise=0.0), **TWO)
    names = [name for name in run.ranks[0].windows if name.startswith("communication")]
    for log in run.ranks:
        for name in names[:-kept]:
            del log.windows[name]
    assert (communication_cost(run) is not None) == (link_bandwidth(run) is not None) == has_cost
    assert communication_cost(make_run(recipe=Recipe(communication="push_pull"), **TWO, seed=1)) is None


def test_the_threads_of_servers_and_of_each_host_count(make_run, snapshot):
    """Two ranks with two threads each, and one server: 5 threads on one host, 2.5 on each of two."""
    recipe = Recipe(communication="push_pull", cores=4)
    run = make_run(recipe=recipe, parameter_servers=1, **TWO)
    assert shared_cores(run) == snapshot
    run.ranks[0].facts["host"] = "host-b"
    assert shared_cores(run) == ""
    run.facts["environment"]["hardware"]["cores"] = 2
    assert shared_cores(run) == snapshot
    run.ranks[0].facts["device"] = "gpu"
    assert shared_cores(run) == ""
