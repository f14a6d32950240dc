"""Which runs of a study do not count for a plan, and what is said of them."""

import socket
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.execution.pending import done_and_not_fitting, pending_of
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.reuse import not_counted
from dlperf_study.study.batch_search import trial
from dlperf_study.study.plan import Entry, Plan
from tests.evidence_factory import Recipe, write_run
from tests.execution.constructed import perform

pytestmark = pytest.mark.usefixtures("constructed_runs")


def sentences(plan: Plan) -> Sequence[str]:
    cluster = load_cluster(plan.cluster)
    done, _ = done_and_not_fitting(plan, cluster)
    return not_counted(plan, cluster, done)


def on_cluster(plan: Plan, name: str) -> Plan:
    """Return the plan of the same study on another cluster."""
    renamed = [replace(entry.configuration, cluster=name) for entry in plan.entries]
    return replace(plan, cluster=name, entries=tuple(Entry(each, renamed[0].identity) for each in renamed))


def test_what_counts_is_not_mentioned(plan, monkeypatch):
    assert sentences(plan) == []
    perform(pending_of(plan, load_cluster(plan.cluster)).executions[:5], monkeypatch)
    assert sentences(plan) == []


@pytest.mark.parametrize(
    ("host", "is_here"), [(socket.gethostname(), True), ("elsewhere", False)], ids=["here", "elsewhere"]
)
def test_runs_of_another_cluster_are_counted_and_so_is_that_it_is_this_machine(plan, host, is_here, snapshot):
    for entry in on_cluster(plan, "busy").entries[:2]:
        for repetition in (1, 2):
            write_run(StudyPaths.of(plan.study), entry.configuration, repetition, Recipe(host=host))
    [sentence] = sentences(plan)
    assert sentence.startswith("4 runs of cluster busy ")
    assert ("this machine" in sentence) is is_here
    assert sentence.endswith("with --cluster busy they do")
    assert sentence == snapshot


def test_runs_of_other_code_are_counted(plan, monkeypatch, snapshot):
    executions = pending_of(plan, load_cluster(plan.cluster)).executions
    perform(executions[2:3], monkeypatch)
    for execution in executions[:2]:
        write_run(StudyPaths.of(plan.study), execution.configuration, 1)
    [sentence] = sentences(plan)
    assert sentence.startswith("2 runs ")
    assert sentence == snapshot


def test_runs_of_removed_configurations_are_counted_but_no_trials(plan, monkeypatch, snapshot):
    perform(pending_of(plan, load_cluster(plan.cluster)).executions[:3], monkeypatch)
    smaller = replace(plan, entries=plan.entries[:1])
    kept = smaller.entries[0].configuration
    reasons = sentences(smaller)
    assert reasons == snapshot
    write_run(StudyPaths.of(plan.study), trial(kept, 64), 1)
    searching = replace(smaller, entries=(replace(smaller.entries[0], is_searched=True),), largest_batch=128)
    assert sentences(searching) == reasons
