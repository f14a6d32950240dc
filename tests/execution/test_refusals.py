"""What nodes refuse before anything starts is not submitted configuration after configuration."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, RunPaths
from dlperf_study.execution import measurement
from dlperf_study.execution.controller import run_study
from dlperf_study.execution.measurement import Measurement, MeasurementSummary
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.repetitions import configuration_paths, controller_facts
from dlperf_study.execution.study_result import Refusals
from dlperf_study.records.run_record import RequestedRun, record, write
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, RunStatus
from tests.execution.constructed import measure_here
from tests.training.frameworks.launching import CLUSTER, configuration

SEES_NONE = "run 1 failed: n1: torch (CUDA 13.0) sees 0 GPUs, but the run needs {}: the driver is too old"
SMALL, LARGE = configuration(devices_per_node=2), configuration(devices_per_node=4)


def refused(*configurations: Configuration) -> Refusals:
    refusals = Refusals()
    for requested in configurations:
        refusals.add(requested, SEES_NONE.format(requested.devices_per_node))
    return refusals


@pytest.mark.parametrize(
    ("earlier", "next_one", "is_refused"),
    [
        ([SMALL], LARGE, False),
        ([SMALL, SMALL], LARGE, False),
        ([SMALL, LARGE], replace(LARGE, nodes=2), True),
        ([SMALL, LARGE], SMALL, True),
        ([SMALL, LARGE], configuration(devices_per_node=1), False),
        ([SMALL, LARGE], replace(LARGE, framework="torch_ddp"), False),
        ([LARGE, replace(SMALL, nodes=4)], SMALL, False),
        ([LARGE, replace(SMALL, nodes=4)], replace(SMALL, nodes=5), True),
    ],
)
def test_two_that_were_refused_alike_speak_for_all_that_need_as_much(earlier, next_one, is_refused):
    assert refused(*earlier).would_refuse(next_one) is is_refused


def test_one_that_starts_or_another_reason_ends_it():
    refusals = refused(SMALL, LARGE)
    refusals.forget(replace(SMALL, framework="torch_ddp"))
    assert refusals.would_refuse(LARGE)
    refusals.forget(LARGE)
    assert not refusals.would_refuse(LARGE)
    refusals = refused(SMALL)
    refusals.add(LARGE, "run 1 failed: Slurm rejected the job: invalid partition")
    assert not refusals.would_refuse(LARGE)


@pytest.mark.parametrize(
    ("status", "seconds", "was_refused"),
    [(RunStatus.FAILED, None, True), (RunStatus.FAILED, 12.5, False), (RunStatus.KILLED, None, False)],
)
def test_nodes_refuse_what_fails_before_anything_started(tmp_path, monkeypatch, status, seconds, was_refused):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(measurement, "NotebookProcess", lambda execution: None)
    run = RequestedRun(SMALL, 1, "", RunPaths(tmp_path / "runs" / "1"))
    run.paths.folder.mkdir(parents=True)
    attempt = Measurement(SMALL, CLUSTER, [run])
    result = JobResult(status, "n1: torch sees 0 GPUs", seconds)
    write(record(run, result, controller_facts(CLUSTER)), run.paths)
    summary = attempt.summary()
    assert (summary.is_failure, summary.was_refused) == (True, was_refused)


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.COMPLETED])
def test_the_record_of_an_earlier_execution_is_no_result_of_this_one(tmp_path, monkeypatch, status):
    """Where a notebook ends before its run begins, as on a full disk, its own failure is what counts."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(measurement, "NotebookProcess", lambda execution: None)
    run = RequestedRun(SMALL, 1, "", RunPaths(tmp_path / "runs" / "1"))
    run.paths.folder.mkdir(parents=True)
    write(record(run, JobResult(status, "of last week", None), controller_facts(CLUSTER)), run.paths)
    attempt = Measurement(SMALL, CLUSTER, [run])
    configuration_paths(SMALL).failure.write_text("0 MB free on the disk\n")
    summary = attempt.summary()
    assert (summary.message, summary.completed) == ("0 MB free on the disk", 0)
    assert (summary.is_failure, summary.was_refused, attempt.waited_in_vain) == (True, False, False)


@pytest.mark.parametrize(("was_refused", "expected"), [(True, 2), (False, 6)])
def test_a_study_asks_the_nodes_twice_and_then_no_more(plan, constructed_runs, monkeypatch, was_refused, expected):
    """Of failures that began with the training each configuration has its own two attempts."""
    started: list[str] = []

    def fail(requested: Configuration, runs: Sequence[RequestedRun]) -> MeasurementSummary:
        started.append(requested.configuration_id)
        return MeasurementSummary(SEES_NONE.format(2), 0, is_failure=True, was_refused=was_refused)

    measure_here(fail, monkeypatch)
    printed: list[str] = []
    run_study(plan, load_cluster(plan.cluster), printed.append)
    assert len(started) == expected
    refusals = [line for line in printed if "the nodes rejected two configurations of paddle_collective" in line]
    assert bool(refusals) is was_refused
