"""Why a value is missing: every dash in a table has its reason."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import pandas as pd

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.columns import COLUMNS, Source
from dlperf_study.metrics.comparison import EQUAL, NOT_DISTINGUISHABLE
from dlperf_study.metrics.metric import not_measured_by_program, not_measured_in_run, only_in_tokens
from dlperf_study.metrics.outcome import completed_of
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.report.formatting import display_name, is_missing
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import BLOCKS, Outcome

#: A program of the user has no rate without an amount of work.
_TOO_FEW_PARTS = f"fewer than {MINIMUM_RUNS} rounds measured the parts of a step of both it and its {{}}: no interval"
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
        return _NO_RATE
    runs = runs.loc[runs["outcome"] != Outcome.COMPLETED, ["outcome", "reason"]]
    failures = []
    for outcome, reason in zip(runs["outcome"], runs["reason"], strict=True):
        failures.append(display_name(outcome) + (f" ({reason})" if not is_missing(reason) else ""))
    return f"no run completed: {'; '.join(dict.fromkeys(failures))}" if failures else "not run yet"


def explain_missing_interval(dataset: Dataset, row: Any, column: str, denominator: Denominator | None = None) -> str:
    """Return why the value in a column, or its ratio to a baseline or reference, has no interval."""
    if denominator is None and column not in dataset.runs:
        # It is computed from several configurations: a diagnostic has the reason.
        return "; ".join(_Gap(dataset, row).messages(column))
    if denominator is not None and dataset.plan.order == BLOCKS:
        return "a study in blocks has no interval of a ratio, however many runs it has"
    if row.runs_completed < MINIMUM_RUNS:
        return f"{counted(int(row.runs_completed), 'completed run')}: an interval needs {MINIMUM_RUNS}"
    if denominator is None:
        return _explain_missing_interval_of_mean(_of_completed_runs(dataset, row.identity, column))
    identities = row.identity, getattr(row, f"{denominator}_identity")
    is_of_parts = column.endswith("_difference_seconds")
    if is_of_parts and not dataset.plan.ingested_from and len(_rounds_with_parts(dataset, identities)) < MINIMUM_RUNS:
        return _TOO_FEW_PARTS.format(denominator)
    rounds, of_denominator = (_of_completed_runs(dataset, identity, "round") for identity in identities)
    if len(of_denominator) < MINIMUM_RUNS:
        return f"its {denominator} has fewer than {MINIMUM_RUNS} completed runs: no interval"
    common_rounds = {*rounds.dropna()} & {*of_denominator.dropna()}
    is_in_rounds = rounds.notna().any() and of_denominator.notna().any()
    if is_in_rounds and len(common_rounds) < MINIMUM_RUNS:
        return (
            f"{counted(len(common_rounds), 'round')} with a run of both it and its {denominator}: an interval of their "
            f"ratio needs {MINIMUM_RUNS}; the ratio itself is of all their runs"
        )
    if len(common_rounds) < MINIMUM_RUNS and not dataset.plan.ingested_from:
        return (
            f"fewer than {MINIMUM_RUNS} rounds have a run of both it and its {denominator}: what a machine does "
            "between blocks of runs can't be told from the configurations"
        )
    return f"runs of it or of its {denominator} are equal, or differ by the same in every round: no interval"


def _rounds_with_parts(dataset: Dataset, identities: Iterable[str]) -> set[Any]:
    """Return the rounds in which the parts of a step of all these were measured: some runs train alone on purpose."""
    rounds = []
    for identity in identities:
        has_parts = _of_completed_runs(dataset, identity, "broken_down_step_seconds").notna()
        rounds.append({*_of_completed_runs(dataset, identity, "round")[has_parts].dropna()})
    return set.intersection(*rounds)


def _of_completed_runs(dataset: Dataset, identity: str, column: str) -> pd.Series:
    """Return what a column has of the completed runs of a configuration."""
    study = dataset.whole or dataset
    return study.runs[column].iloc[_completed_positions(study).get(identity, [])]


@kept_with_dataset
def _completed_positions(dataset: Dataset) -> Mapping[Any, list[int]]:
    """Return where in the table of runs the completed ones of each configuration are."""
    positions = defaultdict[Any, list[int]](list)
    for position, (identity, outcome) in enumerate(zip(dataset.runs["identity"], dataset.runs["outcome"], strict=True)):
        if outcome == Outcome.COMPLETED:
            positions[identity].append(position)
    return positions


def _explain_missing_interval_of_mean(values: pd.Series) -> str:
    """Return why the mean of the values of some runs has no interval."""
    if values.count() < MINIMUM_RUNS:
        return f"fewer than {MINIMUM_RUNS} of its runs have this value: no interval"
    return "all its runs have this very value: no interval"


def _ratio_obstacle(dataset: Dataset, row: Any, denominator: Denominator) -> str:
    """Return why a row has no ratio; empty if the cause is not its baseline or reference."""
    denominator_row = _denominator_row(dataset, row, denominator)
    if denominator_row is None:
        return f"no {denominator} is declared"
    if denominator == "baseline" and not dataset.plan.has_speedups:
        return "no configuration has another one as its baseline"
    if not is_missing(getattr(denominator_row, dataset.rate)):
        return ""
    reason = explain_unmeasured(dataset, denominator_row)
    return f"its {denominator} {denominator_row.identity} has no value: {reason}"


def _difference_obstacle(dataset: Dataset, row: Any, needs_verdict: bool) -> str:
    if is_missing(row.relative_throughput):
        return _ratio_obstacle(dataset, row, "reference")
    reference = _denominator_row(dataset, row, "reference")
    if reference is not None and reference.global_batch != row.global_batch:
        return "its reference has a different global batch, so a step is different work"
    has_parts = reference is not None and not is_missing(reference.broken_down_step_seconds)
    has_parts = has_parts and not is_missing(row.broken_down_step_seconds)
    if has_parts and dataset.rate == "token_throughput" and is_missing(row.computation_difference_seconds):
        return "its reference trains another number of tokens in a step, so a step is different work"
    if row.verdict in (NOT_DISTINGUISHABLE, EQUAL) and needs_verdict:
        return "neither is faster, as far as these runs tell"
    if is_missing(row.verdict) and needs_verdict:
        return explain_missing_interval(dataset, row, "relative_throughput", "reference")
    if not is_missing(row.computation_difference_seconds):
        return _TOO_FEW_PARTS.format("reference")
    return "it was not measured of both"


def _denominator_row(dataset: Dataset, row: Any, denominator: Denominator) -> Any:
    """Return the row of a declared baseline or reference, which is always in the plan; None where none is declared."""
    identity = getattr(row, f"{denominator}_identity")
    return None if is_missing(identity) else dataset.configuration_rows[identity]
