import pytest

from dlperf_study.dataset.run_diagnostics import run_diagnostics
from dlperf_study.diagnostic import Diagnostic, Severity
from tests.evidence_factory import Recipe

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
    assert "settles only at step" in found(run)["settled_at_step"].message


def test_a_window_that_never_settles_says_so(make_run):
    run = make_run({0: {"training": [0.1 + 0.02 * step for step in range(20)]}})
    assert "never settles" in found(run)["settled_at_step"].message


def test_a_window_too_short_to_test_says_so(make_run):
    assert "too few" in found(make_run(measured_steps=5))["settled_at_step"].message


def test_a_straggler_is_named_by_rank_and_host(make_run):
    run = make_run({2: {"computation": [0.16] * 10}}, devices_per_node=4)
    assert found(run)["load_balance"].message.startswith("rank 2 on host-a computes 2.0")


def test_a_step_faster_than_its_computation_is_diagnosed_beyond_noise_only(make_run):
    faster, within = Recipe(exposed_seconds=-0.01), Recipe(exposed_seconds=-0.0001)
    assert "exposed_seconds" in found(make_run(recipe=faster, **TWO))
    assert "exposed_seconds" not in found(make_run(recipe=within, seed=1, **TWO))


def test_waiting_longer_than_the_exchange_takes_is_diagnosed(make_run):
    assert "overlap" in found(make_run(recipe=Recipe(exposed_seconds=0.05), **TWO))


@pytest.mark.parametrize("part", ["computation", "exchange"])
def test_a_missing_part_of_the_breakdown_is_an_error(make_run, part):
    run = make_run(**TWO)
    for log in run.ranks:
        del log.windows[part]
    diagnostic = found(run)[f"{part}_seconds"]
    assert f"the {part}-only window was requested and is missing" in diagnostic.message
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


def test_an_overlap_is_not_known_where_the_step_was_faster_than_its_computation(make_run):
    assert "not known" in found(make_run(recipe=Recipe(exposed_seconds=-0.01), **TWO))["overlap"].message


def test_a_utilisation_above_the_bound_is_an_error(make_run):
    assert found(make_run(recipe=Recipe(peak_flops=1e11)))["mfu"].severity is Severity.ERROR


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_an_error(make_run, loss):
    assert found(make_run(recipe=Recipe(final_loss=loss)))["final_loss"].severity is Severity.ERROR


def test_late_updates_are_diagnosed(make_run):
    recipe = Recipe(exchange="push_pull", drain_seconds=0.5)
    assert "late updates took 0.5 s" in found(make_run(recipe=recipe, **TWO))["drain_seconds"].message
