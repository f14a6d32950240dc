"""What the controller of a study prints, and what it starts at once."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, RunPaths, StudyPaths
from dlperf_study.execution import measurement, progress
from dlperf_study.execution.measurement import Measurement, Measurements
from dlperf_study.execution.pending import PendingExecution
from dlperf_study.execution.progress import Progress
from dlperf_study.execution.repetitions import REQUEST_VARIABLE
from dlperf_study.machines.launchers import slurm
from dlperf_study.machines.supervision.notebook import Execution
from dlperf_study.records.run_record import RequestedRun, read
from dlperf_study.study.configuration import Configuration
from tests import evidence_factory
from tests.evidence_factory import Planned, Recipe, change, write_plan, write_run
from tests.training.frameworks.launching import CLUSTER, configuration

SMALL, LARGE = configuration(), configuration(devices_per_node=2)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which passes when a test says so."""
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def execution(of: Configuration, *repetitions: int) -> PendingExecution:
    runs = [RequestedRun(of, repetition, "", RunPaths(Path(str(repetition)))) for repetition in repetitions]
    return PendingExecution(of, tuple(runs))


def test_what_is_said(clock):
    printed: list[str] = []
    executions = [execution(SMALL, 2), execution(LARGE, 1, 2, 3)]
    progress = Progress(executions, printed.append)
    progress.start(executions[0])
    clock[0] = 10
    progress.end(SMALL.configuration_id, "run 2 completed")
    progress.start(executions[1])
    clock[0] = 100
    progress.end(LARGE.configuration_id, "run 2 failed: why")
    assert printed == [
        f"[1/2] {SMALL.configuration_id}: run 2 …",
        "    run 2 completed (0:10 elapsed, about 0:30 left)",
        f"[2/2] {LARGE.configuration_id}: 3 runs …",
        "    run 2 failed: why (1:40 elapsed, about 0:00 left)",
    ]


def test_two_at_once_are_told_apart():
    printed: list[str] = []
    executions = [execution(SMALL, 1), execution(LARGE, 1)]
    progress = Progress(executions, printed.append)
    progress.start(executions[0])
    progress.start(executions[1])
    progress.report(LARGE.configuration_id, "waits")
    progress.report(SMALL.configuration_id, "runs")
    progress.end(SMALL.configuration_id, "fine")
    progress.end(LARGE.configuration_id, "fine")
    assert printed == [
        f"[1/2] {SMALL.configuration_id}: run 1 …",
        f"[2/2] {LARGE.configuration_id}: run 1 …",
        "    waits",
        f"    {SMALL.configuration_id}: runs",
        "    fine (0:00 elapsed, about 0:00 left)",
        f"    {LARGE.configuration_id}: fine (0:00 elapsed, about 0:00 left)",
    ]


def test_the_time_left_is_that_of_the_configurations_that_are_left(clock):
    """After a round, the durations of all are known: what is left of the second is the slow one."""
    printed: list[str] = []
    executions = [execution(SMALL, 1), execution(LARGE, 1), execution(SMALL, 2), execution(LARGE, 2)]
    progress = Progress(executions, printed.append)
    for execution_now, now in zip(executions, (10, 100, 110), strict=False):
        progress.start(execution_now)
        clock[0] = now
        progress.end(execution_now.configuration.configuration_id, "fine")
    assert [line for line in printed if "fine" in line] == [
        "    fine (0:10 elapsed, about 0:30 left)",
        "    fine (1:40 elapsed, about 1:40 left)",
        "    fine (1:50 elapsed, about 1:30 left)",
    ]


def test_what_goes_on_at_once_takes_less_time(clock):
    printed: list[str] = []
    executions = [execution(SMALL, 1), execution(LARGE, 1), execution(SMALL, 2), execution(LARGE, 2)]
    progress = Progress(executions, printed.append)
    progress.start(executions[0])
    progress.start(executions[1])
    clock[0] = 60
    progress.end(SMALL.configuration_id, "fine")
    progress.end(LARGE.configuration_id, "fine")
    assert printed[-1].endswith("fine (1:00 elapsed, about 1:00 left)")


def test_a_configuration_is_executed_once_at_a_time(monkeypatch):
    """A queue may hold several jobs, but two of one configuration would write the same notebook."""

    class Started:
        def __init__(self, configuration: Configuration, *_: object) -> None:
            self.configuration = configuration

    cluster = replace(CLUSTER, launcher="slurm", settings=slurm.SlurmSettings(jobs_in_queue=2))
    monkeypatch.setattr(measurement, "Measurement", Started)
    measurements = Measurements(cluster)
    assert not measurements.must_wait(SMALL)
    measurements.start(SMALL, ())
    assert measurements.must_wait(SMALL)
    assert not measurements.must_wait(LARGE)
    measurements.start(LARGE, ())
    assert measurements.must_wait(configuration(batch_per_device=8))


def test_what_a_run_waits_for_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(measurement, "NotebookProcess", lambda execution: None)
    run = RequestedRun(SMALL, 1, "", RunPaths(tmp_path / "runs" / "1"))
    run.paths.waiting.parent.mkdir(parents=True)
    run.paths.waiting.write_text("waits until this machine is idle, says a run that was interrupted\n")
    measured = Measurement(SMALL, CLUSTER, [run])
    assert measured.news() == []
    run.paths.waiting.write_text("waits until this machine is idle\n")
    assert measured.news() == ["waits until this machine is idle"]
    assert measured.news() == []


def test_runs_that_wait_in_vain_let_the_next_wait_half_as_long(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    requests: list[dict[str, Any]] = []

    class Ended:
        def __init__(self, execution: Execution) -> None:
            requests.append(json.loads(execution.environment[REQUEST_VARIABLE]))

    monkeypatch.setattr(measurement, "NotebookProcess", Ended)
    monkeypatch.setattr(measurement, "first_done", lambda processes, seconds: processes[0])
    monkeypatch.setattr(Measurement, "finish", lambda measured: None)
    cluster = replace(CLUSTER, idle_max_busy_cores=0.5, idle_wait_seconds=20.0)
    measurements = Measurements(cluster)
    for repetition, busy_cores in enumerate((2.0, 0.6, 0.4, 2.0, 0.0), start=1):
        paths = write_run(StudyPaths(tmp_path), SMALL, repetition)
        facts = read(paths)
        assert facts
        measurements.start(SMALL, [RequestedRun(SMALL, repetition, "", paths)])
        change(paths, load=facts["load"] | {"busy_cores_before": busy_cores})
        measurements.finish_one(0)
    assert [request["idle_wait_seconds"] for request in requests] == [20.0, 10.0, 5.0, 20.0, 10.0]


def test_the_time_of_earlier_runs_is_the_mean_of_completed_ones_with_their_waiting(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    paths = StudyPaths.of("example")
    measured, failed, new = (evidence_factory.configuration(batch_per_device=batch) for batch in (1, 2, 4))
    for repetition, seconds in ((1, 10.0), (2, 20.0)):
        change(write_run(paths, measured, repetition, Recipe(waited_seconds=1.0)), seconds=seconds)
    write_run(paths, failed, 1, Recipe(status="failed"))
    plan = write_plan(paths, map(Planned, (measured, failed, new)))
    assert progress.earlier_run_seconds(plan) == {measured.configuration_id: 16.0}
