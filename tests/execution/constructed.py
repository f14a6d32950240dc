"""Perform executions in this process, as their notebooks do."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from dlperf_study.execution import measurement
from dlperf_study.execution.measurement import MeasurementSummary
from dlperf_study.execution.pending import PendingExecution
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.repetitions import (
    REQUEST_VARIABLE,
    ConfigurationRuns,
    controller_request,
    missing_repetitions,
    requested_runs,
    require_no_failure,
    run_states,
)
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.supervision.processes import CONTROLLER_MARK
from dlperf_study.records.run_record import RequestedRun
from dlperf_study.study.configuration import Configuration


def perform(executions: Sequence[PendingExecution], monkeypatch: pytest.MonkeyPatch) -> None:
    """Perform executions as the notebook does."""
    for execution in executions:
        cluster = load_cluster(execution.configuration.cluster)
        monkeypatch.setenv(REQUEST_VARIABLE, controller_request(execution.runs, cluster))
        require_no_failure(ConfigurationRuns(execution.configuration).perform())
        monkeypatch.delenv(REQUEST_VARIABLE)


def perform_one(
    configuration: Configuration, runs: Sequence[RequestedRun], monkeypatch: pytest.MonkeyPatch
) -> MeasurementSummary:
    """Perform one execution as the notebook does; return the summary of runs that completed."""
    perform([PendingExecution(configuration, tuple(runs))], monkeypatch)
    return MeasurementSummary("completed", len(runs), is_failure=False)


def measure_here(
    measured: Callable[[Configuration, Sequence[RequestedRun]], MeasurementSummary], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the controller measure one execution at a time by calling ``measured``, which executes no notebook."""

    class MeasurementsHere:
        def __init__(self, *_: object) -> None:
            self.running: list[SimpleNamespace] = []

        def __enter__(self) -> "MeasurementsHere":
            return self

        def __exit__(self, *_: object) -> None:
            assert not self.running

        def must_wait(self, configuration: Configuration) -> bool:
            return bool(self.running)

        def start(self, configuration: Configuration, runs: Sequence[RequestedRun]) -> None:
            summary = measured(configuration, runs)
            self.running.append(SimpleNamespace(configuration=configuration, news=lambda: [], summary=lambda: summary))

        def finish_one(self, seconds: float) -> SimpleNamespace:
            return self.running.pop()

    # The controller of a notebook holds the lock for it.
    monkeypatch.setenv(CONTROLLER_MARK, "this test")
    monkeypatch.setattr(measurement, "Measurements", MeasurementsHere)


def missing_runs(configuration: Configuration, cluster: Cluster) -> list[RequestedRun]:
    """Return the requested runs that this code has not completed yet."""
    return missing_repetitions(run_states(requested_runs(configuration, cluster)))
