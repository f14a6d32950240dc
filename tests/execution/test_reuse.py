"""Which runs of a study do not count for a plan, and what is said of them."""

import socket
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dlperf_study.core import code_identity
from dlperf_study.core.paths import StudyPaths
from dlperf_study.execution import cache_key
from dlperf_study.execution.pending import done_and_not_fitting, find_pending
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.reuse import not_counted
from dlperf_study.records import run_record
from dlperf_study.study.batch_search import trial
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Recipe, write_run
from tests.execution.constructed import perform
from tests.execution.test_code_of_a_study import checkout

pytestmark = pytest.mark.usefixtures("constructed_runs")


def sentences(plan: Plan) -> Sequence[str]:
    cluster = load_cluster(plan.cluster)
    done, _ = done_and_not_fitting(plan, cluster)
    return not_counted(plan, cluster, done)


def test_what_counts_is_not_mentioned(plan, monkeypatch):
    assert sentences(plan) == []
    perform(find_pending(plan, load_cluster(plan.cluster)).executions[:5], monkeypatch)
    assert sentences(plan) == []


@pytest.mark.parametrize(
    ("host", "is_here"), [(socket.gethostname(), True), ("elsewhere", False)], ids=["here", "elsewhere"]
)
def test_runs_of_another_cluster_are_counted_and_so_is_that_it_is_this_machine(plan, host, is_here, snapshot):
    for entry in plan.entries[:2]:
        elsewhere = replace(entry.configuration, cluster="busy")
        for repetition in (1, 2):
            write_run(StudyPaths.of(plan.study), elsewhere, repetition, Recipe(host=host))
    [sentence] = sentences(plan)
    assert sentence.startswith("4 runs of cluster busy ")
    assert ("this machine" in sentence) is is_here
    assert sentence.endswith("choose --cluster busy to use them")
    assert sentence == snapshot


def test_runs_that_an_earlier_version_recorded_are_counted(plan, monkeypatch, snapshot):
    executions = find_pending(plan, load_cluster(plan.cluster)).executions
    perform(executions[2:3], monkeypatch)
    for execution in executions[:2]:
        write_run(StudyPaths.of(plan.study), execution.configuration, 1)
    [sentence] = sentences(plan)
    assert sentence.startswith("2 runs ")
    assert sentence == snapshot


SOFTWARE = ("CPython 3.11.7", {"numpy": "2.4.6", "paddlepaddle": "3.2.0"})


@pytest.mark.parametrize(
    ("python", "packages", "difference"),
    [
        ("CPython 3.11.7", {"numpy": "2.4.6", "paddlepaddle": "3.3.1"}, "paddlepaddle 3.2.0 then, 3.3.1 now"),
        ("CPython 3.11.7", {"paddlepaddle": "3.2.0"}, "numpy 2.4.6 then, not installed now"),
        ("PyPy 3.11.7", SOFTWARE[1], "Python CPython 3.11.7 then, PyPy 3.11.7 now"),
        (
            "CPython 3.12.1",
            {"numpy": "2.5.0", "paddlepaddle": "3.2.0"},
            "Python CPython 3.11.7 then, CPython 3.12.1 now; numpy 2.4.6 then, 2.5.0 now",
        ),
    ],
)
def test_software_that_differs_is_named_with_both_versions(plan, monkeypatch, python, packages, difference):
    monkeypatch.setattr(cache_key, "measuring_software", lambda *_: SOFTWARE)
    perform(find_pending(plan, load_cluster(plan.cluster)).executions[:2], monkeypatch)
    assert sentences(plan) == []
    monkeypatch.setattr(cache_key, "measuring_software", lambda *_: (python, packages))
    assert sentences(plan) == [f"2 runs of this plan do not count: {difference}"]


@pytest.mark.parametrize(
    ("files", "difference"),
    [
        (["training/models/mobilenet_v2.py"], "code of dlperf_study.training.models.mobilenet_v2 changed"),
        (
            ["records/lines.py", "records/writers.py", "machines/launchers/local.py", "training/worker/windows.py"],
            "code of dlperf_study.machines.launchers.local, dlperf_study.records.lines, "
            "dlperf_study.records.writers, and 1 more changed",
        ),
    ],
)
def test_modules_that_changed_are_named(plan, monkeypatch, tmp_path, files, difference):
    perform(find_pending(plan, load_cluster(plan.cluster)).executions[:1], monkeypatch)
    changed = checkout(tmp_path / "changed", dict.fromkeys(files, "CHANGED = 1\n"))
    monkeypatch.setattr(code_identity, "PACKAGE_FOLDER", changed)
    assert sentences(plan) == [f"1 run of this plan does not count: {difference}"]


def test_another_device_is_named_and_another_fingerprint_of_the_same_parts(plan, monkeypatch):
    perform(find_pending(plan, load_cluster(plan.cluster)).executions[:2], monkeypatch)
    for device, runs in zip(("gpu", "cpu"), StudyPaths.of(plan.study).begun_runs().values(), strict=True):
        [run] = runs
        facts = run_record.read(run)
        parts = facts["cache_key_parts"] | {"device": device}
        run_record.write(facts | {"cache_key": "0" * 64, "cache_key_parts": parts}, run)
    assert set(sentences(plan)) == {
        "1 run of this plan does not count: device gpu then, cpu now",
        "1 run of this plan does not count: another version computed the cache key",
    }


def test_runs_of_removed_configurations_are_counted_but_no_trials(plan, monkeypatch, snapshot):
    perform(find_pending(plan, load_cluster(plan.cluster)).executions[:3], monkeypatch)
    smaller = plan.changed(entries=plan.entries[:1])
    kept = smaller.entries[0].configuration
    reasons = sentences(smaller)
    assert reasons == snapshot
    write_run(StudyPaths.of(plan.study), trial(kept, 64), 1)
    searching = smaller.changed(
        entries=(smaller.entries[0].model_copy(update={"is_searched": True}),), largest_batch=128
    )
    assert sentences(searching) == reasons
