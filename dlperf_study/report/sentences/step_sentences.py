"""Sentences on what a step waits for, gradients or its batch, and on what most of an efficiency is lost to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pandas as pd

from dlperf_study.core.wording import counted, first_of
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.scaling import FACTORS
from dlperf_study.metrics.statistics import CONFIDENCE, Estimate, Interval
from dlperf_study.report import context
from dlperf_study.report.formatting import THIN_SPACE, column_text, is_missing, percent_at_most
from dlperf_study.report.sentences.names import (
    MOST_NAMED,
    NOTHING,
    PERCENT,
    Names,
    answer,
    percent_text,
    quantity_text,
    range_text,
    together,
)
from dlperf_study.report.series import all_series
from dlperf_study.study.job import Outcome


@dataclass(frozen=True)
class Wait:
    """For how long the steps of a configuration wait: the column of the seconds, and their share of the step."""

    row: Any
    name: str
    column: str
    share: Estimate

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the interval of the share."""
        interval = self.share.share_interval(confidence)
        assert interval is not None
        return interval


def waits(dataset: Dataset, column: str) -> list[Wait]:
    """Return the waits with an interval, of ``exposed_seconds`` or ``input_seconds``, of what can wait at all."""
    names, shares, waiting = Names(dataset), _shares(context.completed_runs(dataset), column), []
    for row in context.measured(dataset).itertuples():
        share = shares.get(row.identity)
        if share is not None and share.error is not None:
            waiting.append(Wait(row, names.of_configuration(row), column, share))
    return waiting


def waiting_for_gradients(dataset: Dataset, row: Any) -> str:
    """Return which share of a step is exposed communication; empty where that can't be told from nothing."""
    runs = dataset.runs_of(row.identity)
    share = _shares(runs[runs["outcome"] == Outcome.COMPLETED], "exposed_seconds").get(row.identity)
    interval = share.share_interval() if share is not None else None
    if share is None or interval is None or interval.low <= 0:
        return ""
    return f"{percent_text(share)} of a step is waiting for gradients"


def _shares(completed: pd.DataFrame, column: str) -> dict[str, Estimate]:
    """Return the mean over runs of the seconds of a column / those of the step; none of what can't wait."""
    runs = completed.dropna(subset=[column, "step_seconds"])
    values = (runs[column] / runs["step_seconds"]).to_numpy(float)
    shares = {}
    for identity, positions in runs.groupby("identity").indices.items():
        if values[positions].any():
            shares[str(identity)] = Estimate.of(values[positions])
    return shares


#: So many configurations have a sentence each; of more, all share one.
MOST_WAITS = 3
#: Less than this share of a step is nothing that a reader would act on.
MATERIAL = 0.01
#: What is lost to each factor of an efficiency.
_LOST_TO = {
    "computation_factor": "computation that takes longer",
    "balance_factor": "ranks that compute unevenly",
    "input_factor": "waiting for batches",
    "communication_factor": "waiting for gradients",
}


def gradient_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield how long steps wait for gradients, as far as the runs tell it from nothing."""
    all_waits = waits(dataset, "exposed_seconds")
    if not all_waits:
        yield _no_wait_reason(dataset)
    elif len(all_waits) <= MOST_WAITS:
        yield from (_sentence(dataset, wait, "gradients") for wait in all_waits)
    else:
        yield from _counted(all_waits, "gradients")


def _no_wait_reason(dataset: Dataset) -> str:
    """Return why nothing is said of the exchange of gradients."""
    rows = context.measured(dataset)
    if rows.empty:
        return ""
    if (rows["exposed_seconds"].fillna(0) == 0).all() and rows["exposed_seconds"].notna().any():
        return "No configuration exchanges gradients: nothing waits for them."
    if rows["exposed_seconds"].isna().all():
        return f"{NOTHING} on communication: steps without an exchange were not measured."
    return f"{NOTHING} on communication: no configuration that exchanges gradients has an interval."


def batch_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield how long steps wait for their batches; nothing where no step waits for one."""
    all_waits = waits(dataset, "input_seconds")
    if len(all_waits) == 1:
        yield _sentence(dataset, all_waits[0], "batches")
    elif all_waits:
        yield from _counted(all_waits, "batches")


def _sentence(dataset: Dataset, wait: Wait, what: str) -> str:
    interval = wait.interval()
    if interval.low <= 0:
        most = percent_at_most(max(interval.high, 0.0))
        return f"These runs can't tell whether {wait.name} waits for {what}: {answer(f'at most {most} of a step')}."
    share, seconds = percent_text(wait.share), quantity_text(dataset, wait.row, wait.column)
    step = quantity_text(dataset, wait.row, "broken_down_step_seconds")
    return f"{wait.name} waits for {what} in {share} of a step: {seconds} of {step}."


def _counted(all_waits: Sequence[Wait], what: str) -> Iterator[str]:
    """Yield which configurations wait for more than is negligible, which for less, and of which that can't be told.

    All shares are judged together: each of these sentences holds in 95 % of cases.
    """
    confidence = together(CONFIDENCE, len(all_waits))
    more, less = [], []
    for wait in all_waits:
        interval = wait.interval(confidence)
        if interval.low > MATERIAL:
            more.append(wait)
        elif interval.high < MATERIAL:
            less.append(wait)
    total, limit = counted(len(all_waits), "configuration"), f"{100 * MATERIAL:g}{THIN_SPACE}%"
    if more:
        shares = range_text([wait.share for wait in more], len(all_waits), PERCENT, interval_of=Estimate.share_interval)
        verb = _wait(len(more))
        yield f"{len(more)} of {total} {verb} for {what} in {shares}{THIN_SPACE}% of a step: {_named(more)}."
    if less:
        verb = _wait(len(less))
        yield f"{len(less)} of {total} {verb} for {what} in less than {limit} of a step: {_named(less)}."
    if unclear := len(all_waits) - len(more) - len(less):
        verb = _wait(unclear)
        yield f"Whether {unclear} of {total} {verb} for {what} in more than {limit} of a step, these runs can't tell."


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _named(all_waits: Sequence[Wait]) -> str:
    return first_of([wait.name for wait in all_waits], MOST_NAMED, "; ")


def loss_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield to what most of the efficiency of each series is lost, where one factor is below all others."""
    names = Names(dataset)
    for line in all_series(dataset):
        rows = [dataset.configuration_rows[identity] for identity in line.measured["identity"]]
        if not rows or rows[-1].is_baseline or is_missing(rows[-1].efficiency_low):
            continue
        if (factor := dominant_factor(rows[-1])) is not None:
            efficiency, lost = (column_text(rows[-1], name) for name in ("efficiency", factor))
            yield (
                f"{names.of_configuration(rows[-1])} reaches an efficiency of {efficiency}; most is lost to "
                f"{_LOST_TO[factor]} (factor {lost})."
            )


def dominant_factor(row: Any) -> str | None:
    """Return the factor of an efficiency whose interval is below 1 and below the intervals of all others, or None."""
    values = dict(zip(FACTORS, attrgetter(*FACTORS)(row), strict=True))
    if any(map(is_missing, values.values())):
        return None
    smallest = min(values, key=values.__getitem__)
    high = getattr(row, f"{smallest}_high")
    if is_missing(high) or high >= 1:
        return None
    for name, value in values.items():
        low = getattr(row, f"{name}_low")
        # A factor without an interval is the same in all runs: exact, as that of input where nothing is read.
        if name != smallest and (value if is_missing(low) else low) <= high:
            return None
    return smallest
