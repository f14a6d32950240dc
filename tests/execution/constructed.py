"""Perform executions in this process, as their notebooks do."""

from collections.abc import Sequence

import pytest

from dlperf_study.execution.pending import PendingExecution
from dlperf_study.execution.repetitions import REQUEST_VARIABLE, ConfigurationRuns, driver_request, require_no_failure


def perform(executions: Sequence[PendingExecution], monkeypatch: pytest.MonkeyPatch) -> None:
    """Perform executions as the notebook does."""
    for execution in executions:
        monkeypatch.setenv(REQUEST_VARIABLE, driver_request(execution.runs, "cpu"))
        require_no_failure(ConfigurationRuns(execution.configuration).perform())
        monkeypatch.delenv(REQUEST_VARIABLE)
