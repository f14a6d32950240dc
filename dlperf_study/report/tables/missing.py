"""Why a value is missing: every dash in a table has its reason."""

from functools import cached_property
from typing import Any

import pandas as pd

from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.configuration_table import Measurements, StepParts
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.columns import COLUMNS, Source
from dlperf_study.metrics.comparison import EQUAL, NOT_DISTINGUISHABLE, excess, throughput_ratio
from dlperf_study.metrics.metric import not_measured_by_program, not_measured_in_run, only_in_tokens
from dlperf_study.metrics.no_interval import NoInterval
from dlperf_study.metrics.outcome import completed_of, counted_of
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.report.formatting import display_name
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import BLOCKS, Outcome

_TOO_FEW_PARTS = f"fewer than {MINIMUM_RUNS} rounds measured the parts of a step of both it and its {{}}: no interval"
_NOT_OF_BOTH = "it was not measured of both"
_ONLY_IN_SAMPLES = "its rate is known in samples/s, and not in tokens/s"
#: An earlier version may have made the table.
_NOT_IN_TABLE = "the table of configurations has no interval of it"
#: A program of the user has no rate without an amount of work.
_NO_RATE = "its completed runs have no rate; the study of a program gives it by samples_per_step or tokens_per_step"


class _Gap:
    """A configuration without a value of a metric, as its reasons look at it."""

    def __init__(self, dataset: Dataset, row: Any) -> None:
        self.row = row
        self._dataset = dataset

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Its completed runs."""
        return completed_of(self._dataset.runs_of(self.row.identity))

    def has(self, name: str) -> bool:
        """Return whether it has a value of another metric."""
        return not is_missing(getattr(self.row, name))

    def messages(self, subject: str) -> list[str]:
        """Return the messages of its diagnostics about a subject."""
        diagnostics = self._dataset.diagnostics_of(self.row.identity)
        return list(diagnostics.loc[diagnostics["subject"] == subject, "message"])

    def ratio_obstacle(self, role: Denominator) -> str:
        """Return why it can't be compared with its baseline or reference."""
        return _ratio_obstacle(self._dataset, self.row, role)

    def difference_obstacle(self, needs_verdict: bool) -> str:
        """Return why the parts of its step, or a verdict on them, can't be compared with those of its reference."""
        return _difference_obstacle(self._dataset, self.row, needs_verdict)


def explain_missing(dataset: Dataset, row: Any, column: str) -> str:
    """Return why a row of the configurations has no value in ``column``: the first reason of its metric that holds."""
    metric = COLUMNS[column]
    is_of_trials = metric.source is Source.BATCH_SEARCH and is_missing(row.unsupported_reason)
    if not row.runs_completed and not is_of_trials:
        return explain_unmeasured(dataset, row)
    gap = _Gap(dataset, row)
    reasons = (*metric.missing, not_measured_by_program, "not recorded")
    sentences = (reason if isinstance(reason, str) else reason(gap) for reason in reasons)
    return next(filter(None, sentences))


def explain_missing_of_run(row: Any, column: str) -> str:
    """Return why a run has no value in ``column``; where that is not known, what the column is."""
    if row.outcome != Outcome.COMPLETED:
        return "the run does not count"
    metric = COLUMNS[column]
    reason = metric.missing_of_run
    sentence = reason if isinstance(reason, str) else reason(row)
    return sentence or not_measured_in_run(row) or f"{metric.label}: {metric.definition}."


def explain_unmeasured(dataset: Dataset, row: Any, with_messages: bool = True) -> str:
    """Return why a configuration has no completed run, or none with a rate in samples/s.

    ``with_messages``: with what the processes printed, which a sentence has no room for.
    """
    if not is_missing(row.unsupported_reason):
        return f"unsupported: {row.unsupported_reason}"
    runs = dataset.runs_of(row.identity)
    runs = runs if with_messages else runs.assign(reason=None)
    not_fitting = runs.loc[runs["outcome"] == Outcome.OUT_OF_MEMORY, "reason"]
    if len(not_fitting):
        return ": ".join(filter(None, ("does not fit in memory", "; ".join(dict.fromkeys(not_fitting.dropna())))))
    if in_tokens := only_in_tokens(_Gap(dataset, row)):
        return in_tokens
    if row.runs_completed:
        return _ONLY_IN_SAMPLES if not is_missing(row.throughput) else _NO_RATE
    runs = runs.loc[runs["outcome"] != Outcome.COMPLETED, ["outcome", "reason"]]
    failures = []
    for outcome, reason in zip(runs["outcome"], runs["reason"], strict=True):
        failures.append(display_name(outcome) + (f" ({reason})" if not is_missing(reason) else ""))
    return f"no run completed: {'; '.join(dict.fromkeys(failures))}" if failures else "not run yet"


def explain_missing_interval(dataset: Dataset, row: Any, column: str, denominator: Denominator | None = None) -> str:
    """Return why the value in a column, or its ratio to a baseline or reference, has no interval.

    The estimate of the value is made again, by the functions that made the table, and has the reason.
    """
    if denominator is None and column not in dataset.runs:
        # It is computed from several configurations: a diagnostic has the reason.
        return "; ".join(_Gap(dataset, row).messages(column))
    if denominator is None:
        return _explain_mean_without_interval(dataset, row, column)
    if row.runs_completed < MINIMUM_RUNS and dataset.plan.order != BLOCKS:
        return _few_runs(row)
    if column.endswith("_difference_seconds"):
        parts = _step_parts(dataset.whole or dataset).differences(dataset.plan.by_identity[row.identity])
        estimate = parts.get(column.replace("_difference_seconds", "_seconds"))
        return _explain_parts_without_interval(estimate.reason if estimate else None, denominator)
    return _explain_ratio_without_interval(dataset, row, denominator)


def _explain_mean_without_interval(dataset: Dataset, row: Any, column: str) -> str:
    measurements = _measurements(dataset.whole or dataset)
    if row.runs_completed < MINIMUM_RUNS:
        return _few_runs(row)
    if not measurements.values(row.identity, column).size:
        return _NOT_IN_TABLE
    match measurements.estimate(row.identity, column).reason:
        case NoInterval.FEW_VALUES:
            return f"fewer than {MINIMUM_RUNS} of the runs that give its interval have this value: no interval"
        case NoInterval.EQUAL_VALUES:
            return "all its runs have this very value: no interval"
    return _NOT_IN_TABLE


def _explain_ratio_without_interval(dataset: Dataset, row: Any, role: Denominator) -> str:
    throughputs = dataset.throughputs
    entry = dataset.plan.by_identity[row.identity]
    denominator_identity = str(entry.denominator(role))
    if not {row.identity, denominator_identity} <= throughputs.keys():
        return _ratio_obstacle(dataset, row, role) or _NOT_IN_TABLE
    numerator, denominator = throughputs[row.identity], throughputs[denominator_identity]
    reason = throughput_ratio(entry, role, throughputs).reason
    if reason is NoInterval.FEW_ROUNDS and dataset.plan.order == BLOCKS:
        return "a study in blocks has no interval of a ratio, however many runs it has"
    match reason:
        case NoInterval.FEW_VALUES | NoInterval.FEW_ROUNDS if denominator.values.size < MINIMUM_RUNS:
            return f"fewer than {MINIMUM_RUNS} completed runs of its {role} have a rate: no interval"
        case NoInterval.FEW_VALUES:
            return f"fewer than {MINIMUM_RUNS} of its runs have a rate: no interval"
        case NoInterval.FEW_ROUNDS:
            count = numerator.within_rounds(denominator).size
            return (
                f"{counted(count, 'round')} with a run of both it and its {role}: an interval of their ratio needs "
                f"{MINIMUM_RUNS}; the ratio itself is of all their runs"
            )
        case NoInterval.EQUAL_VALUES if numerator.rounds is None or denominator.rounds is None:
            return f"all runs of it or of its {role} have the same value: no interval"
        case NoInterval.EQUAL_VALUES:
            return f"it and its {role} differ by the same in every round: no interval"
    return _NOT_IN_TABLE


def _explain_parts_without_interval(reason: NoInterval | None, role: Denominator) -> str:
    match reason:
        case NoInterval.FEW_ROUNDS | NoInterval.FEW_VALUES:
            return _TOO_FEW_PARTS.format(role)
        case NoInterval.EQUAL_VALUES:
            return f"the parts of a step of it and its {role} differ by the same in every round: no interval"
    return _NOT_IN_TABLE


def _few_runs(row: Any) -> str:
    return f"{counted(int(row.runs_completed), 'completed run')}: an interval needs {MINIMUM_RUNS}"


@kept_with_dataset
def _measurements(dataset: Dataset) -> Measurements:
    """Return the means over runs that the table of configurations has."""
    return Measurements(completed_of(dataset.runs), counted_of(dataset.runs), dataset.looks)


@kept_with_dataset
def _step_parts(dataset: Dataset) -> StepParts:
    """Return the comparisons of parts of steps that the table of configurations has."""
    return StepParts(dataset.plan, counted_of(dataset.runs), (), dataset.looks)


def _ratio_obstacle(dataset: Dataset, row: Any, denominator: Denominator) -> str:
    """Return why a row has no ratio; empty if both have a rate."""
    denominator_row = _denominator_row(dataset, row, denominator)
    if denominator_row is None:
        return f"no {denominator} is declared"
    if denominator == "baseline" and not dataset.plan.has_speedups:
        return "no configuration has another one as its baseline"
    if not is_missing(getattr(denominator_row, dataset.rate)):
        return explain_unmeasured(dataset, row) if is_missing(getattr(row, dataset.rate)) else ""
    reason = explain_unmeasured(dataset, denominator_row)
    return f"its {denominator} {denominator_row.identity} has no value: {reason}"


def _difference_obstacle(dataset: Dataset, row: Any, needs_verdict: bool) -> str:
    if is_missing(row.relative_throughput):
        return _ratio_obstacle(dataset, row, "reference")
    entry, parts = dataset.plan.by_identity[row.identity], _step_parts(dataset.whole or dataset)
    if not parts.is_same_work(entry):
        reference = _denominator_row(dataset, row, "reference")
        if reference.global_batch != row.global_batch:
            return "its reference has a different global batch, so a step is different work"
        return "its reference trains another number of tokens in a step, so a step is different work"
    if not needs_verdict:
        return _NOT_OF_BOTH
    if is_missing(row.verdict):
        return explain_missing_interval(dataset, row, "relative_throughput", "reference")
    if row.verdict in (NOT_DISTINGUISHABLE, EQUAL):
        return "neither is faster, as far as these runs tell"
    deciding = parts.differences(entry).get(excess("computation_seconds", "exposed_seconds"))
    if deciding is not None and deciding.error is None:
        return _explain_parts_without_interval(deciding.reason, "reference")
    return _NOT_OF_BOTH


def _denominator_row(dataset: Dataset, row: Any, denominator: Denominator) -> Any:
    """Return the row of a declared baseline or reference, which is always in the plan; None where none is declared."""
    identity = getattr(row, f"{denominator}_identity")
    return None if is_missing(identity) else dataset.configuration_rows[identity]
