"""What is diagnosed of a run: each case with the severity of each subject, and its messages as a snapshot."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dlperf_study.core.errors import Diagnostic
from dlperf_study.dataset.run_table import run_diagnostics
from tests.evidence_factory import Recipe
from tests.run_fixtures import computation

TWO = {"devices_per_node": 2}
NO_WARNING: dict[str, str] = {}


@dataclass(frozen=True)
class Case:
    """A constructed run: seconds by rank and window, recipe and parameters; ``without``: a window that it lost."""

    expected: dict[str, str]
    recipe: Recipe | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    times: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    without: str = ""


def waiting(advantage: float, **parameters: Any) -> Case:
    """The step waits 30 ms longer than the communication takes; the fastest rank is faster by this share of 80 ms."""
    kind = "push_pull" if "parameter_servers" in parameters else "all_reduce"
    recipe = Recipe(exposed_communication_seconds=0.05, communication=kind, rank_advantage=advantage)
    slower = {"load_balance": "warning"} if advantage > 0.1 else {}
    return Case({"overlap": "warning", **slower}, recipe, parameters)


def on_cores(cores: int, expected: dict[str, str], **parameters: int) -> Case:
    return Case(expected, Recipe(cores=cores), parameters)


TOO_FEW, SHARED = {"cores": "warning"}, {"overlap": "note"}
UNEVEN = computation([0.16] * 5, [0.16] * 5)
PENDING = Recipe(communication="push_pull", drain_resolution_seconds=0.1)
CASES = {
    "good": Case(NO_WARNING),
    "good on two": Case(NO_WARNING, parameters=TWO),
    "good on four": Case(NO_WARNING, parameters={"devices_per_node": 4}),
    "its own": Case({"clock": "warning"}, Recipe(diagnostics=({"subject": "clock", "message": "it jumped"},))),
    "failed": Case({"status": "error"}, Recipe(status="timeout", reason="longer than 600 s")),
    "busy": Case({"background_cores": "warning"}, Recipe(busy_cores=1.5)),
    "2 on 2 cores": on_cores(2, SHARED, devices_per_node=2),
    "4 on 2 cores": on_cores(2, TOO_FEW | SHARED, devices_per_node=4),
    "2 and a server on 2 cores": on_cores(2, TOO_FEW | SHARED, devices_per_node=2, parameter_servers=1),
    "2 of 2 threads on 2 cores": on_cores(2, TOO_FEW | SHARED, devices_per_node=2, threads_per_device=2),
    "2 of 2 threads on 4 cores": on_cores(4, SHARED, devices_per_node=2, threads_per_device=2),
    "settles late": Case({"steadiness": "warning"}, times={0: {"training": [0.2] * 8 + [0.1] * 12}}),
    "never settles": Case({"steadiness": "warning"}, times={0: {"training": [0.1 + 0.02 * k for k in range(20)]}}),
    "too short to tell": Case(NO_WARNING, parameters={"measured_steps": 5}),
    "too noisy to tell": Case(NO_WARNING, Recipe(noise=0.1)),
    "straggler": Case(
        # Of its training steps it was not slower: the computation takes longer than the step.
        {"load_balance": "warning", "exposed_communication_seconds": "warning"},
        parameters={"devices_per_node": 4},
        times={2: UNEVEN},
    ),
    "faster than its computation": Case(
        {"exposed_communication_seconds": "warning"}, Recipe(exposed_communication_seconds=-0.01), TWO
    ),
    "faster by noise": Case(NO_WARNING, Recipe(exposed_communication_seconds=-0.0001), {"seed": 1, **TWO}),
    "first half missing": Case({"compute_seconds": "error"}, Recipe(), TWO, without="computation_before"),
    "second half missing": Case({"compute_seconds": "error"}, Recipe(), TWO, without="computation_after"),
    "communication missing": Case({"communication_seconds": "error"}, Recipe(), TWO, without="communication"),
    "waits for slower ranks": waiting(0.5, **TWO),
    "waits longer than slower ranks explain": waiting(0.05, **TWO),
    "waits for a server": waiting(0.0, parameter_servers=1),
    "slower ranks at a server": waiting(0.5, parameter_servers=1, **TWO),
    "jitter not known": Case({"overlap": "note"}, parameters={"classifier": "sharded", **TWO}),
    "impossible utilisation": Case({"mfu": "error"}, Recipe(peak_flops=1e11)),
    "utilisation with Winograd": Case({"mfu": "warning"}, Recipe(peak_flops=3e11), TWO),
    "late updates": Case(
        {"drain_seconds": "warning", "overlap": "warning"}, Recipe(communication="push_pull", drain_seconds=0.5), TWO
    ),
    "drain not seen": Case({"drain_seconds": "warning"}, PENDING, {"measured_steps": 10, **TWO}),
    "drain not seen in a long window": Case(NO_WARNING, PENDING, {"measured_steps": 100, **TWO}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_diagnostics_of_a_run(make_run, name, snapshot):
    case = CASES[name]
    run = make_run(case.times, case.recipe, **case.parameters)
    for log in run.ranks if case.without else ():
        del log.windows[case.without]
    diagnostics = run_diagnostics(run)
    assert {diagnostic.subject: diagnostic.severity for diagnostic in diagnostics} == case.expected
    assert all((each.configuration_id, each.repetition) == (run.configuration_id, 1) for each in diagnostics)
    if diagnostics:
        assert [diagnostic.message for diagnostic in diagnostics] == snapshot


def found(run) -> dict[str, Diagnostic]:
    return {diagnostic.subject: diagnostic for diagnostic in run_diagnostics(run)}


def test_a_run_that_was_measured_after_its_round_says_so(make_run, snapshot):
    run = make_run()
    late = replace(run, facts={**run.facts, "round": None, "position": None})
    assert found(late)["round"].message == snapshot


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
def test_the_record_and_the_clocks_of_the_ranks_tell_one_time(make_run, started, is_wrong, snapshot):
    """The ranks began at 10:01:01; the run lasted 600 s, and clocks may differ by a minute."""
    run = make_run(**TWO)
    for log in run.ranks:
        log.facts["wall_anchor"]["unix_ns"] = 1_714_557_661 * 10**9
    diagnostics = found(replace(run, facts={**run.facts, "started": started}))
    assert ("started" in diagnostics) == is_wrong
    if is_wrong:
        assert diagnostics["started"].message == snapshot


@pytest.mark.parametrize(("factor", "noise", "is_named"), [(1.2, 0.01, True), (1.2, 0.5, False), (1.03, 0.001, False)])
def test_a_straggler_is_slower_than_chance_explains(make_run, factor, noise, is_named):
    """The one of two ranks whose steps all take 20 % longer is named, unless steps differ by more than that anyway."""
    slow = (0.08 * factor * (1 + noise * np.random.default_rng(0).standard_normal(10))).tolist()
    run = make_run({1: computation(slow[:5], slow[5:])}, recipe=Recipe(noise=noise), **TWO)
    assert ("load_balance" in found(run)) == is_named


@pytest.mark.parametrize("scaling", ["dynamic", "static"])
def test_measured_steps_that_updated_nothing_are_diagnosed(make_run, scaling, snapshot):
    run = make_run(precision="amp_fp16", loss_scaling=scaling)
    assert "skipped_steps" not in found(run)
    [log] = run.ranks
    training = replace(log.windows["training"], skipped_steps=3)
    skipping = replace(log, windows={**log.windows, "training": training}, end={**log.end, "loss_scale": 128.0})
    assert found(replace(run, ranks=(skipping,)))["skipped_steps"].message == snapshot
