"""Why a value is missing: every dash in a table has its reason."""

from functools import cached_property
from typing import Any

import pandas as pd

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.configuration_table import Measurements, StepParts
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.findings import reasons
from dlperf_study.metrics.columns import COLUMNS, Source
from dlperf_study.metrics.comparison import EQUAL, NO_SIGNIFICANT_DIFFERENCE, excess
from dlperf_study.metrics.metric import not_measured_by_program, not_measured_in_run
from dlperf_study.metrics.run_status import select_completed, select_counted
from dlperf_study.metrics.statistics import MINIMUM_RUNS, NoInterval
from dlperf_study.report.say import say_one
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import SEQUENTIAL, RunStatus

_TOO_FEW_PARTS = f"fewer than {MINIMUM_RUNS} rounds measured the parts of a step of both it and its {{}}: no interval"
_NOT_OF_BOTH = "it was not measured of both"


class _Gap:
    """A configuration without a value of a metric."""

    def __init__(self, dataset: Dataset, row: Any) -> None:
        self.row = row
        self._dataset = dataset

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Its completed runs."""
        return select_completed(self._dataset.select_runs(self.row.configuration_id))

    def has(self, name: str) -> bool:
        """Return whether it has a value of another metric."""
        return not is_missing(getattr(self.row, name))

    def messages(self, subject: str) -> list[str]:
        """Return the messages of its diagnostics about a subject."""
        diagnostics = self._dataset.select_diagnostics(self.row.configuration_id)
        return list(diagnostics.loc[diagnostics["subject"] == subject, "message"])

    def ratio_obstacle(self, role: Denominator) -> str:
        """Return why it can't be compared with its baseline or reference."""
        missing = reasons.no_ratio(self._dataset, self.row, role)
        return say_one(missing) if missing else ""

    def difference_obstacle(self, needs_significance: bool) -> str:
        """Return why parts of its step cannot be compared with its reference."""
        dataset, row = self._dataset, self.row
        if is_missing(row.relative_throughput):
            return self.ratio_obstacle("reference")
        entry, parts = dataset.plan.by_id[row.configuration_id], _step_parts(dataset.whole or dataset)
        if not parts.is_same_work(entry):
            reference = dataset.configuration_rows[row.reference_id]
            if reference.global_batch != row.global_batch:
                return "its reference has a different global batch, so a step is different work"
            return "its reference trains another number of tokens in a step, so a step is different work"
        if not needs_significance:
            return _NOT_OF_BOTH
        if is_missing(row.significance):
            return explain_missing_interval(dataset, row, "relative_throughput", "reference")
        if row.significance in (NO_SIGNIFICANT_DIFFERENCE, EQUAL):
            return "no significant difference"
        deciding = parts.differences(entry).get(excess("compute_seconds", "exposed_communication_seconds"))
        if deciding is not None and deciding.error is None:
            return _explain_parts_without_interval(deciding.reason, "reference")
        return _NOT_OF_BOTH


def explain_missing(dataset: Dataset, row: Any, column: str) -> str:
    """Return why a configuration has no value in ``column``."""
    metric = COLUMNS[column]
    is_of_trials = metric.source is Source.BATCH_SEARCH and is_missing(row.unsupported_reason)
    if not row.runs_completed and not is_of_trials:
        return explain_unmeasured(dataset, row)
    gap = _Gap(dataset, row)
    for reason in (*metric.missing, not_measured_by_program):
        sentence = reason if isinstance(reason, str) else reason(gap)
        if sentence:
            return sentence
    return "not recorded"


def explain_unmeasured(dataset: Dataset, row: Any) -> str:
    """Return why a configuration has no throughput."""
    missing = reasons.no_throughput(dataset, row)
    return say_one(missing) if missing else ""


def explain_missing_of_run(row: Any, column: str) -> str:
    """Return why a run has no value in ``column``."""
    if row.status != RunStatus.COMPLETED:
        return "the run does not count"
    metric = COLUMNS[column]
    reason = metric.missing_of_run
    sentence = reason if isinstance(reason, str) else reason(row)
    return sentence or not_measured_in_run(row) or f"{metric.label}: {metric.definition}."


def explain_missing_interval(dataset: Dataset, row: Any, column: str, denominator: Denominator | None = None) -> str:
    """Return why a value, or its ratio, has no interval."""
    if denominator is None and column not in dataset.runs:
        # It is computed from several configurations: a diagnostic has the reason.
        return "; ".join(_Gap(dataset, row).messages(column))
    if denominator is None:
        return _explain_mean_without_interval(dataset, row, column)
    if column.endswith("_difference_seconds"):
        if row.runs_completed < MINIMUM_RUNS and dataset.plan.order != SEQUENTIAL:
            return _few_runs(row)
        parts = _step_parts(dataset.whole or dataset).differences(dataset.plan.by_id[row.configuration_id])
        estimate = parts.get(column.replace("_difference_seconds", "_seconds"))
        return _explain_parts_without_interval(estimate.reason if estimate else None, denominator)
    return say_one(reasons.no_comparison(dataset, row, denominator))


def _explain_mean_without_interval(dataset: Dataset, row: Any, column: str) -> str:
    measurements = _measurements(dataset.whole or dataset)
    if row.runs_completed < MINIMUM_RUNS:
        return _few_runs(row)
    if not measurements.values(row.configuration_id, column).size:
        return say_one(reasons.NoResult(reasons.Reason.NOT_IN_TABLE))
    match measurements.estimate(row.configuration_id, column).reason:
        case NoInterval.FEW_VALUES:
            return f"fewer than {MINIMUM_RUNS} of the runs that give its interval have this value: no interval"
        case NoInterval.EQUAL_VALUES:
            return "all its runs have this very value: no interval"
    return say_one(reasons.NoResult(reasons.Reason.NOT_IN_TABLE))


def _explain_parts_without_interval(reason: NoInterval | None, role: Denominator) -> str:
    match reason:
        case NoInterval.FEW_ROUNDS | NoInterval.FEW_VALUES:
            return _TOO_FEW_PARTS.format(role)
        case NoInterval.EQUAL_VALUES:
            return f"the parts of a step of it and its {role} differ by the same in every round: no interval"
    return say_one(reasons.NoResult(reasons.Reason.NOT_IN_TABLE))


def _few_runs(row: Any) -> str:
    return say_one(reasons.NoResult(reasons.Reason.TOO_FEW_RUNS, count=int(row.runs_completed)))


@kept_with_dataset
def _measurements(dataset: Dataset) -> Measurements:
    return Measurements(select_completed(dataset.runs), select_counted(dataset.runs), dataset.looks)


@kept_with_dataset
def _step_parts(dataset: Dataset) -> StepParts:
    return StepParts(dataset.plan, select_counted(dataset.runs), (), dataset.looks)
