import re
from dataclasses import replace

import numpy as np
import pytest

from dlperf_study.dataset.run_diagnostics import run_diagnostics
from dlperf_study.diagnostic import Diagnostic, Severity
from tests.evidence_factory import Recipe
from tests.run_fixtures import computation

SLOW_START = [0.2] * 8 + [0.1] * 12
TWO = {"devices_per_node": 2}


def found(run):
    return {diagnostic.subject: diagnostic for diagnostic in run_diagnostics(run)}


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_a_good_run_raises_no_warning(make_run, devices):
    assert run_diagnostics(make_run(devices_per_node=devices)) == []


def test_a_diagnostic_says_which_run_it_is_about(make_run):
    run = make_run(recipe=Recipe(busy_cores=1.5))
    (diagnostic,) = run_diagnostics(run)
    assert (diagnostic.identity, diagnostic.repetition) == (run.identity, 1)


def test_the_runs_own_diagnostics_are_passed_on(make_run):
    own = {"subject": "clock", "message": "it jumped"}
    run = make_run(recipe=Recipe(diagnostics=(own,)))
    assert run_diagnostics(run) == [Diagnostic("clock", "it jumped", identity=run.identity, repetition=1)]


def test_a_failed_run_is_an_error_with_its_reason(make_run):
    diagnostic = found(make_run(recipe=Recipe(outcome="timeout", reason="longer than 600 s")))["outcome"]
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.message == "timeout, not counted: longer than 600 s"


def test_a_run_that_was_measured_after_its_round_says_so(make_run):
    run = make_run()
    late = replace(run, facts={**run.facts, "round": None, "position": None})
    assert "round" not in found(run)
    assert "ratios leave it out" in found(late)["round"].message


@pytest.mark.parametrize(
    ("started", "is_wrong"),
    [
        ("2024-05-01T10:01:50+00:00", False),
        ("2024-05-01T10:02:10+00:00", True),
        ("2024-05-01T12:01:10+02:00", False),
        ("2024-05-01T09:50:10+00:00", False),
        ("2024-05-01T09:49:50+00:00", True),
    ],
)
def test_the_record_and_the_clocks_of_the_ranks_tell_one_time(make_run, started, is_wrong):
    """The ranks began at 10:01:01; the run lasted 600 s, and clocks may differ by a minute."""
    run = make_run(**TWO)
    for log in run.ranks:
        log.facts["wall_anchor"]["unix_ns"] = 1_714_557_661 * 10**9
    diagnostics = found(replace(run, facts={**run.facts, "started": started}))
    assert ("started" in diagnostics) == is_wrong
    if is_wrong:
        message = f"run.json says {started}, but on host-a it was 2024-05-01T10:01:01+00:00 when rank 0 began"
        assert message in diagnostics["started"].message


def test_other_load_is_diagnosed(make_run):
    assert "1.50 cores busy during" in found(make_run(recipe=Recipe(busy_cores=1.5)))["busy_cores"].message


@pytest.mark.parametrize(
    ("parameters", "cores", "diagnosed"),
    [
        ({"devices_per_node": 2}, 2, False),
        ({"devices_per_node": 4}, 2, True),
        ({"devices_per_node": 2, "servers": 1}, 2, True),
        ({"devices_per_node": 2, "threads_per_device": 2}, 2, True),
        ({"devices_per_node": 2, "threads_per_device": 2}, 4, False),
    ],
)
def test_more_processes_or_threads_than_cores_are_diagnosed(make_run, parameters, cores, diagnosed):
    assert ("cores" in found(make_run(recipe=Recipe(cores=cores), **parameters))) is diagnosed


def test_a_window_that_settles_late_says_where(make_run):
    run = make_run({0: {"training": SLOW_START}})
    message = found(run)["steadiness"].message
    assert re.search(r"differ by \d+ % of a step; it is steady only from step \d+ of 20 on: a longer warm-up", message)


def test_a_window_that_never_settles_says_so(make_run):
    run = make_run({0: {"training": [0.1 + 0.02 * step for step in range(20)]}})
    assert "its second half is not shown to be steady either" in found(run)["steadiness"].message


@pytest.mark.parametrize(("steps", "noise"), [(5, 0.01), (20, 0.1)])
def test_a_window_too_short_to_tell_is_no_diagnostic_of_a_run(make_run, steps, noise):
    assert "steadiness" not in found(make_run(measured_steps=steps, recipe=Recipe(noise=noise)))


def test_a_straggler_is_named_by_rank_and_host(make_run):
    run = make_run({2: computation([0.16] * 5, [0.16] * 5)}, devices_per_node=4)
    message = found(run)["load_balance"].message
    assert re.match(r"straggler: rank 2 on host-a computes (1\.9|2\.0)\d? times as long as others", message)


@pytest.mark.parametrize(("factor", "noise", "is_named"), [(1.2, 0.01, True), (1.2, 0.5, False), (1.03, 0.001, False)])
def test_a_straggler_is_slower_than_chance_explains(make_run, factor, noise, is_named):
    """The one of two ranks whose steps all take 20 % longer is named, unless steps differ by more than that anyway."""
    slow = (0.08 * factor * (1 + noise * np.random.default_rng(0).standard_normal(10))).tolist()
    run = make_run({1: computation(slow[:5], slow[5:])}, recipe=Recipe(noise=noise), **TWO)
    assert ("load_balance" in found(run)) == is_named


def test_a_step_faster_than_its_computation_is_diagnosed_beyond_noise_only(make_run):
    faster, within = Recipe(exposed_seconds=-0.01), Recipe(exposed_seconds=-0.0001)
    assert "exposed_seconds" in found(make_run(recipe=faster, **TWO))
    assert "exposed_seconds" not in found(make_run(recipe=within, seed=1, **TWO))


def test_waiting_longer_than_the_exchange_takes_is_diagnosed(make_run):
    assert "overlap" in found(make_run(recipe=Recipe(exposed_seconds=0.05), **TWO))


@pytest.mark.parametrize(
    ("part", "column", "message"),
    [
        ("computation_before", "computation_seconds", "the first computation-only window"),
        ("computation_after", "computation_seconds", "the second computation-only window"),
        ("exchange", "exchange_seconds", "the exchange-only window"),
    ],
)
def test_a_missing_part_of_the_breakdown_is_an_error(make_run, part, column, message):
    run = make_run(**TWO)
    for log in run.ranks:
        del log.windows[part]
    diagnostic = found(run)[column]
    assert f"{message} was requested and is missing" in diagnostic.message
    assert diagnostic.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("advantage", "parameters", "explained"),
    [
        (0.5, TWO, True),
        (0.05, TWO, False),
        (0.0, {"servers": 1}, False),
        (0.5, {"servers": 1, **TWO}, False),
    ],
)
def test_slower_ranks_are_named_only_where_they_explain_the_waiting(make_run, advantage, parameters, explained):
    """The step waits 30 ms longer than the exchange takes; the fastest rank is 40 or 4 ms faster."""
    kind = "push_pull" if "servers" in parameters else "all_reduce"
    recipe = Recipe(exposed_seconds=0.05, exchange=kind, rank_advantage=advantage)
    message = found(make_run(recipe=recipe, **parameters))["overlap"].message
    assert ("waiting for a slower rank" in message, "hooks, copies" in message) == (explained, not explained)


def test_an_overlap_is_not_given_where_threads_share_cores(make_run):
    diagnostic = found(make_run(recipe=Recipe(cores=2), **TWO))["overlap"]
    assert "4 threads of ranks, exchange and servers share 2 cores" in diagnostic.message
    assert diagnostic.severity is Severity.NOTE


def test_an_overlap_is_not_given_where_jitter_is_not_known(make_run):
    diagnostic = found(make_run(classifier="sharded", **TWO))["overlap"]
    assert diagnostic.message.startswith("not given: ranks wait for each other inside their computation")
    assert diagnostic.severity is Severity.NOTE


def test_a_utilisation_above_the_bound_is_an_error_unless_winograd_may_save_as_much(make_run):
    diagnostic = found(make_run(recipe=Recipe(peak_flops=1e11)))["mfu"]
    assert diagnostic.severity is Severity.ERROR
    wrong = "the peak of a device, 1e+11 FLOP/s (from the cluster file), or the FLOPs of the model are wrong"
    assert diagnostic.message == f"7.99 is above 1: {wrong}"
    diagnostic = found(make_run(recipe=Recipe(peak_flops=3e11), devices_per_node=2))["mfu"]
    assert diagnostic.severity is Severity.WARNING
    assert "is above 1: 3×3 convolutions by Winograd's algorithm" in diagnostic.message


def test_late_updates_are_diagnosed(make_run):
    recipe = Recipe(exchange="push_pull", drain_seconds=0.5)
    assert "late updates took 0.5 s" in found(make_run(recipe=recipe, **TWO))["drain_seconds"].message


def test_a_drain_that_could_not_be_seen_is_diagnosed_where_it_matters(make_run):
    """Updates may have been pending for 0.1 s of a window of 0.9 s; of 9 s that would be nothing."""
    recipe = Recipe(exchange="push_pull", drain_resolution_seconds=0.1)
    message = found(make_run(recipe=recipe, measured_steps=10, **TWO))["drain_seconds"].message
    assert "may have taken 0.1 s more than could be seen, 11 % of what counts" in message
    assert "drain_seconds" not in found(make_run(recipe=recipe, measured_steps=100, **TWO))


@pytest.mark.parametrize(
    ("scaling", "remedy"), [("dynamic", "a longer warm-up"), ("static", "the constant 128 is too")]
)
def test_measured_steps_that_updated_nothing_are_diagnosed(make_run, scaling, remedy):
    run = make_run(precision="amp_fp16", loss_scaling=scaling)
    assert "skipped_steps" not in found(run)
    [log] = run.ranks
    training = replace(log.windows["training"], skipped_steps=3)
    skipping = replace(log, windows={**log.windows, "training": training}, end={**log.end, "loss_scale": 128.0})
    message = found(replace(run, ranks=(skipping,)))["skipped_steps"].message
    assert message.startswith("3 of 20 measured steps updated nothing: their gradients overflowed")
    assert remedy in message
