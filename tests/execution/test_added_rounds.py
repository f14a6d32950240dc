"""Rounds that a driver adds until the intervals of a study are as narrow as it asks."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dlperf_study.evidence.run_record import RequestedRun
from dlperf_study.execution import progress
from dlperf_study.execution.driver import TooWide, run_study
from dlperf_study.execution.measurement import MeasurementSummary
from dlperf_study.execution.pending import PendingExecution
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.study_result import StudyResult
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan
from tests.execution.constructed import measure_here, perform

#: Seconds that each run takes by the clock of these tests.
RUN_SECONDS = 60.0


@pytest.fixture
def measured(constructed_runs: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Perform executions in this process; return identity and repetition of each run, in order."""
    runs_measured: list[tuple[str, int]] = []
    clock = [0.0]

    def perform_in_time(configuration: Configuration, runs: Sequence[RequestedRun]) -> MeasurementSummary:
        perform([PendingExecution(configuration, tuple(runs))], monkeypatch)
        runs_measured.extend((configuration.identity, run.repetition) for run in runs)
        clock[0] += RUN_SECONDS
        return MeasurementSummary("completed", len(runs), is_failure=False)

    measure_here(perform_in_time, monkeypatch)
    # The clock of all else goes on: a wait with a limit would never end.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return runs_measured


def run(plan: Plan, too_wide: TooWide, **limits: object) -> tuple[StudyResult, list[str]]:
    """Run a study with a precision; return what it did and what it printed."""
    printed: list[str] = []
    wanted = replace(plan, precision=0.02, **{"max_repeats": 10, **limits})  # type: ignore[arg-type]
    return run_study(wanted, load_cluster(plan.cluster), printed.append, too_wide), printed


def names(plan: Plan) -> list[str]:
    return [entry.configuration.identity for entry in plan.entries]


def test_rounds_are_added_for_what_is_too_wide_until_nothing_is(plan, measured):
    first, second, third = names(plan)
    answers = [{first, second, third}, {first, third}, set[str]()]
    result, printed = run(plan, lambda _: answers.pop(0) if len(measured) else {first})
    assert sorted(measured[9:12]) == sorted([(first, 4), (second, 4), (third, 4)])
    assert sorted(measured[12:]) == sorted([(first, 5), (third, 5)])
    assert result.measured == 14
    assert "round 5 is added for 2 configurations: the study asks for a precision" in printed


def test_a_study_that_grew_says_what_is_done_and_how_long_the_rest_takes(plan, measured, snapshot):
    _, at_first = run(replace(plan, entries=plan.entries[:2]), lambda _: set())
    _, printed = run(plan, lambda _: set())
    assert not any(line.startswith("Done") for line in at_first)
    assert printed[0] == snapshot
    assert len(measured) == 9
    assert run(plan, lambda _: set())[1] == []


def test_no_more_rounds_are_added_than_the_study_allows(plan, measured):
    first, _, _ = names(plan)
    _, printed = run(plan, lambda _: {first}, max_repeats=5)
    assert measured[9:] == [(first, 4), (first, 5)]
    assert printed[-1] == "no further round for 1 configuration: 5 are the most; the report says what more would take"


def test_a_round_that_would_end_after_the_budget_is_not_added(plan, measured):
    first, second, _ = names(plan)
    _, printed = run(plan, lambda _: {first, second}, time_budget_minutes=12.0)
    assert len(measured) == 9 + 2
    assert printed[-1] == "no further round for 2 configurations: the time budget is used up"


def test_the_first_round_of_a_call_is_held_to_the_budget_too(plan, measured):
    first, _, _ = names(plan)
    run(plan, lambda _: set())
    _, printed = run(plan, lambda _: {first}, time_budget_minutes=9.0)
    assert len(measured) == 9
    assert printed[-1] == "no further round for 1 configuration: the time budget is used up"
    run(plan, lambda _: {first}, max_repeats=4, time_budget_minutes=11.0)
    assert measured[9:] == [(first, 4)]


def test_a_study_that_is_measured_but_too_imprecise_goes_on(plan, measured):
    first, _, _ = names(plan)
    run(plan, lambda _: set())
    assert len(measured) == 9
    run(plan, lambda _: {first}, max_repeats=4)
    assert measured[9:] == [(first, 4)]
    result, _ = run(plan, lambda _: set())
    assert (result.measured, result.already_measured) == (0, 9)


def test_without_a_precision_nothing_is_added(plan, measured):
    run_study(plan, load_cluster(plan.cluster), lambda _: None)
    assert len(measured) == 9
