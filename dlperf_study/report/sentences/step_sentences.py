"""Sentences on what a step waits for, gradients or its batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlperf_study.core.wording import counted, first_of
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.comparison import rounds_of, samples_of
from dlperf_study.metrics.statistics import CONFIDENCE, Estimate, Interval
from dlperf_study.report.formatting import MOST_NAMED, THIN_SPACE, format_bounded, listed
from dlperf_study.report.sentences.names import (
    NOTHING,
    PERCENT,
    Names,
    answer,
    is_vague,
    percent_text,
    together,
)

#: The column of the share of a step, by that of its seconds.
_SHARES = {"exposed_seconds": "exposed_share", "input_seconds": "input_share"}


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

    @property
    def most(self) -> str:
        """The upper end of the interval in per cent, as tables print it."""
        interval = self.interval()
        _, printed = format_bounded(self.share.mean, interval.low, max(interval.high, 0.0), size=PERCENT)
        return f"{printed.strip('[]').rpartition(' ')[2]}{THIN_SPACE}%"


def waits(dataset: Dataset, column: str) -> list[Wait]:
    """Return the waits with an interval, of ``exposed_seconds`` or ``input_seconds``, of what can wait at all."""
    names, shares, waiting = Names(dataset), _shares(dataset, column), []
    for row in dataset.measured.itertuples():
        share = shares.get(row.identity)
        if share is not None and share.error is not None:
            waiting.append(Wait(row, names.of_configuration(row), column, share))
    return waiting


def waiting_for_gradients(dataset: Dataset, row: Any) -> str:
    """Return which share of a step is exposed communication; empty where these runs tell little or nothing of it."""
    share = _shares(dataset, "exposed_seconds").get(row.identity)
    interval = share.share_interval() if share is not None else None
    if share is None or interval is None or is_vague(interval):
        return ""
    return f"{percent_text(share)} of a step is waiting for gradients{_included(dataset, row)}"


def _included(dataset: Dataset, row: Any) -> str:
    """Return what else is in the exposed communication of a configuration: ``, jitter included``; or nothing.

    Where threads that compute and threads that exchange share cores, the one slows the other.
    """
    parts = ["jitter"] if row.jitter_seconds and not is_missing(row.jitter_seconds) else []
    runs = dataset.runs_of(row.identity)
    has_all = runs[["exposed_seconds", "exchange_seconds", "jitter_seconds"]].notna().all(axis="columns")
    if (has_all & runs["overlap"].isna()).any():
        parts.append("what shared cores cost")
    return f", {listed(parts)} included" if parts else ""


@kept_with_dataset
def _shares(dataset: Dataset, column: str) -> dict[str, Estimate]:
    """Return the mean over runs of the share of a step, with the error that tables have; none of what can't wait."""
    runs = dataset.counted_runs
    shares = samples_of(runs[_SHARES[column]], runs["identity"], rounds_of(runs, dataset.plan), dataset.looks)
    return {identity: share.estimate for identity, share in shares.items() if share.values.any()}


#: So many configurations have a sentence each; of more, all share one.
MOST_WAITS = 3
#: Less than this share of a step is nothing that a reader would act on.
MATERIAL = 0.01


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
    rows = dataset.measured
    if rows.empty:
        return ""
    if (rows["exposed_seconds"] == 0).all():
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
        most = answer(f"at most {wait.most} of a step")
        return f"It is inconclusive whether {wait.name} waits for {what} ({most})."
    included = _included(dataset, wait.row) if wait.column == "exposed_seconds" else ""
    if is_vague(interval):
        most = answer(f"at most {wait.most} of a step")
        return f"{wait.name} waits for {what}{included}, {most}."
    return f"{wait.name} waits for {what} in {percent_text(wait.share)} of a step{included}."


def _counted(all_waits: Sequence[Wait], what: str) -> Iterator[str]:
    """Yield which configurations wait for more than is negligible, which for less, and which are inconclusive.

    Intervals are corrected for the number of configurations: each of these sentences holds in 95 % of cases.
    """
    confidence = together(CONFIDENCE, len(all_waits))
    more, less, unclear = list[Wait](), list[Wait](), list[Wait]()
    for wait in all_waits:
        interval = wait.interval(confidence)
        of_kind = more if interval.low > MATERIAL else less if interval.high < MATERIAL else unclear
        of_kind.append(wait)
    total, limit = counted(len(all_waits), "configuration"), f"{100 * MATERIAL:g}{THIN_SPACE}%"
    if more:
        shares, verb = _range_of_shares(more, confidence), _wait(len(more))
        yield f"{len(more)} of {total} {verb} for {what} in {shares or f'more than {limit}'} of a step: {_named(more)}."
    if less:
        verb = _wait(len(less))
        yield f"{len(less)} of {total} {verb} for {what} in less than {limit} of a step: {_named(less)}."
    if unclear:
        subject = f"It is inconclusive for {len(unclear)} of {total} whether more than {limit} of a step"
        yield f"{subject} is waiting for {what}{_alone(unclear)}."


def _alone(unclear: Sequence[Wait]) -> str:
    """Return which of these waits are clear by their own intervals, as the table shows them; empty if none is."""
    clear = [wait for wait in unclear if wait.interval().low > MATERIAL]
    named = [
        wait.name if is_vague(wait.interval()) else f"{wait.name} in {percent_text(wait.share)} of a step"
        for wait in clear
    ]
    verb = "one does" if len(clear) == 1 else f"{len(clear)} do"
    return f"; by their own intervals {verb}: {first_of(named, MOST_NAMED, '; ')}" if named else ""


def _range_of_shares(waits_of_kind: Sequence[Wait], confidence: float) -> str:
    """Return bounds of several shares at this confidence each, in per cent, of one with its value; empty if vague."""
    bounds = [wait.interval(confidence) for wait in waits_of_kind]
    if any(map(is_vague, bounds)):
        return ""
    low, high = min(bound.low for bound in bounds) / PERCENT, max(bound.high for bound in bounds) / PERCENT
    if len(bounds) > 1:
        _, printed = format_bounded(low, low, high)
    else:
        printed = " ".join(format_bounded(waits_of_kind[0].share.mean / PERCENT, low, high))
    return f"{printed}{THIN_SPACE}%"


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _named(all_waits: Sequence[Wait]) -> str:
    return first_of([wait.name for wait in all_waits], MOST_NAMED, "; ")
