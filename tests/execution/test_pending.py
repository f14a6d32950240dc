"""What is still to be measured of a plan, in which order, and which of it is too late for its round."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.execution.pending import PendingExecution, added_round, find_pending, unmeasured_runs
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.repetitions import ConfigurationRuns
from dlperf_study.study import validation
from dlperf_study.study.job import BY_HAND, Turn
from dlperf_study.study.order import planned_executions
from dlperf_study.study.plan import Entry, Plan
from dlperf_study.study.validation import read_text_file
from tests.execution.constructed import perform

pytestmark = pytest.mark.usefixtures("constructed_runs")


def pending(plan: Plan) -> list[PendingExecution]:
    return find_pending(plan, load_cluster(plan.cluster)).executions


def turns(executions: Sequence[PendingExecution]) -> list[Turn]:
    return [run.turn for execution in executions for run in execution.runs]


def test_executions_are_in_the_order_of_the_plan_and_an_interrupted_study_goes_on_within_its_round(plan, monkeypatch):
    executions, planned = pending(plan), planned_executions(plan)
    assert [each.configuration for each in executions] == [each.configuration for each in planned]
    assert turns(executions) == [each.turn for each in planned]
    assert [each.run_names for each in executions] == ["run 1"] * 3 + ["run 2"] * 3 + ["run 3"] * 3
    perform(executions[:4], monkeypatch)
    records = [json.loads(run.paths.run_file.read_text()) for each in executions[:4] for run in each.runs]
    recorded_turns = [(facts["order"], facts["round"], facts["position"]) for facts in records]
    assert recorded_turns == [
        ("interleaved", 1, 1),
        ("interleaved", 1, 2),
        ("interleaved", 1, 3),
        ("interleaved", 2, 1),
    ]
    assert not any(run.paths.folder.exists() for each in executions[4:] for run in each.runs)
    assert pending(plan) == executions[4:]
    perform(executions[4:], monkeypatch)
    assert pending(plan) == []


def test_how_many_runs_of_each_configuration_are_done(plan, monkeypatch):
    cluster = load_cluster(plan.cluster)
    configuration_ids = {entry.configuration.configuration_id for entry in plan.entries}
    assert find_pending(plan, cluster).done == dict.fromkeys(configuration_ids, 0)
    executions = pending(plan)
    perform(executions, monkeypatch)
    perform(added_round(plan, cluster, 4, (3, 3)), monkeypatch)
    assert find_pending(plan, cluster).done == dict.fromkeys(configuration_ids, 3)
    shutil.rmtree(executions[4].runs[0].paths.folder)
    of_removed = {executions[4].configuration.configuration_id: 2}
    assert find_pending(plan, cluster).done == dict.fromkeys(configuration_ids, 3) | of_removed


def test_a_finished_study_reads_each_record_and_each_rank_log_once(plan, monkeypatch):
    perform(pending(plan), monkeypatch)
    reads: Counter[str] = Counter()

    def counted_text(path: Path) -> str:
        reads[path.name] += 1
        return read_text_file(path)

    monkeypatch.setattr(validation, "read_text_file", counted_text)
    assert pending(plan) == []
    assert reads == {"run.json": 9, "rank-00000.jsonl": 9, "rank-00001.jsonl": 9}


def test_a_run_that_is_repeated_after_later_ones_is_in_no_round(plan, monkeypatch):
    executions = pending(plan)
    perform(executions[:5], monkeypatch)
    # The last of the second round keeps its run of the first: without it, it would look like one that is added now.
    of_first_round = next(each for each in executions[:3] if each.configuration != executions[5].configuration)
    late = [of_first_round, executions[3]]
    for execution in late:
        shutil.rmtree(execution.runs[0].paths.folder)
    again = pending(plan)
    assert [each.runs[0].paths for each in again] == [each.runs[0].paths for each in (*late, *executions[5:])]
    assert turns(again) == [Turn("interleaved"), Turn("interleaved"), *turns(executions[5:])]


def added_last(plan: Plan, round_number: int) -> Plan:
    """Return the plan with a further configuration that comes last in a round."""
    for batch in count(17):
        added = replace(plan.entries[0].configuration, batch_per_device=batch)
        entry = Entry(configuration=added, baseline_id=plan.entries[0].baseline_id)
        larger = plan.changed(entries=(*plan.entries, entry))
        planned = [each for each in planned_executions(larger) if each.turn.round == round_number]
        if planned[-1].configuration == added:
            return larger
    raise AssertionError


def test_a_configuration_that_is_added_to_a_finished_study_is_in_none_of_its_rounds(plan, monkeypatch):
    perform(pending(plan), monkeypatch)
    larger = added_last(plan, round_number=3)
    executions = pending(larger)
    assert {each.configuration for each in executions} == {larger.entries[-1].configuration}
    assert turns(executions) == [Turn("interleaved")] * 3
    # It shares the rounds that follow.
    longer = tuple(
        each.model_copy(update={"configuration": replace(each.configuration, repetitions=4)}) for each in larger.entries
    )
    rounds = [turn.round for turn in turns(pending(larger.changed(entries=longer)))]
    assert rounds == [None, None, None, 4, 4, 4, 4]
    # It is in none either if the call ends before the last of its runs.
    perform(executions[:2], monkeypatch)
    assert turns(pending(larger)) == [Turn("interleaved")]


def test_a_round_for_precision_that_was_begun_is_continued_without_what_was_added_since(plan, monkeypatch):
    cluster = load_cluster(plan.cluster)
    perform(pending(plan), monkeypatch)
    configuration_ids = {entry.configuration.configuration_id for entry in plan.entries}
    perform(added_round(plan, cluster, 4, (3, 3))[:2], monkeypatch)
    larger = added_last(plan, round_number=3)
    continued = added_round(larger, cluster, 4, (4, 2))
    assert [each.configuration.configuration_id in configuration_ids for each in continued] == [True]
    assert len(added_round(larger, cluster, 5, (4, 3))) == 4


def test_blocks_are_resumed_with_what_is_missing(plan, monkeypatch):
    executions = pending(plan.changed(order="sequential"))
    assert [each.run_names for each in executions] == ["3 runs"] * 3
    perform(executions[:2], monkeypatch)
    shutil.rmtree(executions[0].runs[1].paths.folder)
    again = pending(plan.changed(order="sequential"))
    assert [each.run_names for each in again] == ["run 2", "3 runs"]
    assert {turn.order for turn in turns(again)} == {"sequential"}


@pytest.mark.parametrize("order", ["interleaved", "sequential"])
def test_what_nccl_chooses_is_reported_before_the_first_run_of_several_gpus(plan, order):
    gpus = replace(load_cluster(plan.cluster), device="gpu")
    executions = find_pending(plan.changed(order=order), gpus).executions
    names = {each.run_names for each in executions if each.configuration.world_size > 1}
    expected = {
        "interleaved": {"run 1 and the NCCL-reported one", "run 2", "run 3"},
        "sequential": {"3 runs and the NCCL-reported one"},
    }
    assert names == expected[order]
    first = next(each for each in executions if each.configuration.world_size > 1).runs[0]
    assert (first.is_measured, first.variables["NCCL_DEBUG"]) == (False, "INFO")
    assert not any("NCCL" in each.run_names for each in executions if each.configuration.world_size == 1)
    several = [entry for entry in plan.entries if entry.configuration.world_size > 1]
    assert unmeasured_runs(plan, gpus) == {"NCCL-reported": len(several)}


def test_runs_that_are_measured_by_hand_are_in_no_round_and_with_the_name_of_a_study_they_are_done(plan):
    by_hand = plan.entries[0].configuration
    records = ConfigurationRuns(by_hand).perform()
    assert [facts["repetition"] for facts in records] == [1, 2, 3]
    assert {(facts["order"], facts["round"], facts["position"]) for facts in records} == {(BY_HAND, None, None)}
    state = find_pending(plan, load_cluster(plan.cluster))
    assert state.done[by_hand.configuration_id] == by_hand.repetitions
    assert by_hand not in [each.configuration for each in state.executions]


def test_a_run_that_an_earlier_execution_did_not_begin_is_an_error_of_the_later_ones(plan, monkeypatch, refused):
    """The execution of the second round measures its run, and shows what is missing before."""
    executions = pending(plan)
    second = next(each for each in executions[3:] if each.configuration == executions[0].configuration)
    with refused(RunError):
        perform([second], monkeypatch)
    assert second.runs[0].state().is_completed


def test_an_added_round_measures_every_configuration_once_more(plan, monkeypatch):
    cluster = load_cluster(plan.cluster)
    perform(pending(plan), monkeypatch)
    executions = added_round(plan, cluster, 4, (3, 3))
    assert sorted(each.configuration.configuration_id for each in executions) == sorted(
        entry.configuration.configuration_id for entry in plan.entries
    )
    assert turns(executions) == [Turn("interleaved", 4, position) for position in (1, 2, 3)]
    perform(executions[:1], monkeypatch)
    assert json.loads(executions[0].runs[0].paths.run_file.read_text())["round"] == 4
    continued = added_round(plan, cluster, 4, find_pending(plan, cluster).last_measured)
    assert [each.configuration for each in continued] == [each.configuration for each in executions[1:]]
    assert turns(continued) == [Turn("interleaved", 4, 2), Turn("interleaved", 4, 3)]
