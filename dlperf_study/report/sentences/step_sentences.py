"""Sentences on what a step waits for, gradients or its batch, and on what most of an efficiency is lost to."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from dlperf_study.analysis.statistics import CONFIDENCE
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import THIN_SPACE, bounded_value, is_missing, value_text
from dlperf_study.report.sentences.names import PERCENT, Names, percent_text, quantity_text, range_text, together
from dlperf_study.report.sentences.page_sentences import NOTHING
from dlperf_study.report.sentences.ratio_sentences import MOST_NAMED
from dlperf_study.report.sentences.waits import Wait, waits
from dlperf_study.report.series import all_series
from dlperf_study.report.tables.missing import FACTORS
from dlperf_study.wording import counted, first_of

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


def on_gradients(dataset: Dataset) -> Iterator[str]:
    """Yield how long steps wait for gradients, as far as the runs tell it from nothing."""
    all_waits = waits(dataset, "exposed_seconds")
    if not all_waits:
        yield _why_no_wait(dataset)
    elif len(all_waits) <= MOST_WAITS:
        yield from (_sentence(wait, "gradients") for wait in all_waits)
    else:
        yield from _counted(all_waits, "gradients")


def _why_no_wait(dataset: Dataset) -> str:
    """Return why nothing is said of the exchange of gradients."""
    rows = context.measured(dataset)
    if rows.empty:
        return ""
    if (rows["exposed_seconds"].fillna(0) == 0).all() and rows["exposed_seconds"].notna().any():
        return "No configuration exchanges gradients: nothing waits for them."
    if rows["exposed_seconds"].isna().all():
        return f"{NOTHING} on communication: steps without an exchange were not measured."
    return f"{NOTHING} on communication: no configuration that exchanges gradients has an interval."


def on_batches(dataset: Dataset) -> Iterator[str]:
    """Yield how long steps wait for their batches; nothing where no step waits for one."""
    all_waits = waits(dataset, "input_seconds")
    if all_waits:
        yield from _counted(all_waits, "batches") if len(all_waits) > 1 else (_sentence(all_waits[0], "batches"),)


def _sentence(wait: Wait, what: str) -> str:
    interval = wait.share.interval()
    share, seconds = percent_text(wait.share), quantity_text(wait.row, wait.column)
    if interval is None or interval.low <= 0:
        return f"These runs can't tell whether {wait.name} waits for {what}: {share} of a step, {seconds}."
    return f"{wait.name} waits for {what} in {share} of a step: {seconds} of {quantity_text(wait.row, 'step_seconds')}."


def _counted(all_waits: Sequence[Wait], what: str) -> Iterator[str]:
    """Yield which configurations wait for more than is negligible, which for less, and of which that can't be told.

    All shares are judged together: each of these sentences holds in 95 % of cases.
    """
    confidence = together(CONFIDENCE, len(all_waits))
    more, less = [], []
    for wait in all_waits:
        interval = wait.share.interval(confidence)
        if interval and interval.low > MATERIAL:
            more.append(wait)
        elif interval and interval.high < MATERIAL:
            less.append(wait)
    total, limit = counted(len(all_waits), "configuration"), f"{100 * MATERIAL:g}{THIN_SPACE}%"
    if more:
        shares = range_text([wait.share for wait in more], len(all_waits), PERCENT)
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


def on_losses(dataset: Dataset) -> Iterator[str]:
    """Yield to what most of the efficiency of each series is lost, where one factor is below all others."""
    names = Names(dataset)
    for line in all_series(dataset):
        rows = [dataset.configuration_rows[identity] for identity in line.measured["identity"]]
        if not rows or rows[-1].is_baseline or is_missing(rows[-1].efficiency_low):
            continue
        if (factor := dominant_factor(rows[-1])) is not None:
            efficiency, lost = (
                value_text(bounded_value(rows[-1], name), decision=1.0) for name in ("efficiency", factor)
            )
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
