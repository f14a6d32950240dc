"""Rounds that a controller adds: for a target precision, or after background load."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from dlperf_study.execution import progress
from dlperf_study.execution.controller import run_study
from dlperf_study.execution.measurement import MeasurementSummary
from dlperf_study.execution.pending import find_pending
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.study_result import StudyResult
from dlperf_study.records.run_record import RequestedRun
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan
from tests.execution.constructed import measure_here, perform_one

#: Seconds that each run takes by the clock of these tests.
RUN_SECONDS = 60.0
WANTED = "the target CI is not reached"


@pytest.fixture
def measured(constructed_runs: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Perform executions in this process; return identity and repetition of each run, in order."""
    runs_measured: list[tuple[str, int]] = []
    clock = [0.0]

    def perform_in_time(configuration: Configuration, runs: Sequence[RequestedRun]) -> MeasurementSummary:
        runs_measured.extend((configuration.configuration_id, run.repetition) for run in runs)
        clock[0] += RUN_SECONDS
        return perform_one(configuration, runs, monkeypatch)

    measure_here(perform_in_time, monkeypatch)
    # The clock of all else goes on: a wait with a limit would never end.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return runs_measured


def run(plan: Plan, reasons: Sequence[str], **limits: object) -> tuple[StudyResult, list[str]]:
    """Run a study that has these reasons for a further round in turn; return what it did and what it printed."""
    printed: list[str] = []
    left = list(reasons)
    wanted = plan.changed(target_ci=0.02, **{"max_repetitions": 12, **limits})  # type: ignore[arg-type]

    def further_round(_: Plan) -> str:
        return left.pop(0) if left else ""

    return run_study(wanted, load_cluster(plan.cluster), printed.append, further_round), printed


def of_round(plan: Plan, number: int) -> list[tuple[str, int]]:
    return sorted((entry.configuration.configuration_id, number) for entry in plan.entries)


def test_rounds_of_all_configurations_are_added_as_long_as_there_is_a_reason(plan, measured):
    result, printed = run(plan, ["the target CI is not reached", "background load disturbed runs"])
    assert sorted(measured[9:12]) == of_round(plan, 4)
    assert sorted(measured[12:]) == of_round(plan, 5)
    assert result.measured == 15
    assert "round 4 is added: the target CI is not reached" in printed
    assert "round 5 is added: background load disturbed runs" in printed


def test_a_study_that_grew_says_what_is_done_and_how_long_the_rest_takes(plan, measured, snapshot):
    _, at_first = run(plan.changed(entries=plan.entries[:2]), [])
    _, printed = run(plan, [])
    assert not any(line.startswith("Done") for line in at_first)
    assert printed[0] == snapshot
    assert len(measured) == 9
    assert run(plan, [])[1] == []


def test_no_more_rounds_are_added_than_the_target_and_the_repetition_of_disturbed_ones_allow(plan, measured):
    _, printed = run(plan, [WANTED] * 20, max_repetitions=6)
    assert max(number for _, number in measured) == 6 + 3
    assert printed[-1] == f"no further round, though {WANTED}: 9 rounds are the most"


def test_without_a_target_as_many_rounds_are_repeated_as_are_planned(plan, measured):
    printed: list[str] = []
    run_study(plan, load_cluster(plan.cluster), printed.append, lambda _: WANTED)
    assert max(number for _, number in measured) == 3 + 3
    assert printed[-1] == f"no further round, though {WANTED}: 6 rounds are the most"


def test_a_round_that_would_end_after_the_budget_is_not_added(plan, measured):
    _, printed = run(plan, [WANTED, WANTED], time_budget_minutes=13.0)
    assert len(measured) == 9 + 3
    assert printed[-1] == f"no further round, though {WANTED}: the time budget is used up"


def test_the_first_round_of_a_call_is_held_to_the_budget_too(plan, measured):
    run(plan, [])
    _, printed = run(plan, [WANTED, WANTED], time_budget_minutes=29.0)
    assert len(measured) == 9
    assert printed[-1] == f"no further round, though {WANTED}: the time budget is used up"
    run(plan, [WANTED, WANTED], time_budget_minutes=31.0)
    assert sorted(measured[9:]) == of_round(plan, 4)


def test_a_study_that_is_measured_but_needs_a_round_goes_on(plan, measured):
    run(plan, [])
    assert len(measured) == 9
    run(plan, [WANTED, WANTED])
    assert sorted(measured[9:]) == of_round(plan, 4)
    result, _ = run(plan, [])
    assert (result.measured, result.already_measured) == (0, 9)


def test_the_bar_has_the_runs_that_are_done_and_those_that_are_left(plan, measured, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    first, second, third, *_ = find_pending(plan, load_cluster(plan.cluster)).executions
    with progress.Progress([first, second], print) as shown:
        shown.start(first)
        shown.end(first.configuration.configuration_id, "done")
        shown.add([third])
        shown.skip(second)
        shown.expect(3)
    assert capsys.readouterr().out.count("1 of 5 runs") == 1
