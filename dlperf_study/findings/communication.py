"""The share of a step that waits for communication or for data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.findings import number
from dlperf_study.findings.number import Number
from dlperf_study.metrics.comparison import assign_rounds, collect_samples
from dlperf_study.metrics.statistics import CONFIDENCE, Estimate

#: Of more configurations counts are printed.
MAX_LINES = 3
#: A smaller share of the step time is negligible.
NEGLIGIBLE = 0.01


class Loss(StrEnum):
    """What a step waits for; the value is its column of shares."""

    COMMUNICATION = "exposed_communication_share"
    INPUT = "input_share"


class Included(StrEnum):
    """What exposed communication can't be separated from."""

    JITTER = "jitter"
    CONTENTION = "contention"


@dataclass(frozen=True)
class Stall:
    """The share of step time that one configuration waits."""

    subject: str
    loss: Loss
    share: Number
    included: tuple[Included, ...] = ()


@dataclass(frozen=True)
class StallCounts:
    """How many configurations wait for more than a negligible share; corrected for the number of configurations."""

    loss: Loss
    total: int
    above: int
    below: int
    limit: float
    only_uncorrected: tuple[Stall, ...]


@dataclass(frozen=True)
class NoCommunication:
    """A study without measured communication; ``is_none``: no configuration communicates."""

    is_none: bool


def page(dataset: Dataset) -> Iterator[object]:
    """Yield the findings: communication first, unless nothing communicates."""
    order = [Loss.COMMUNICATION, Loss.INPUT]
    if (dataset.measured["exposed_communication_seconds"].fillna(0) == 0).all():
        order.reverse()
    for loss in order:
        yield from stalls(dataset, loss)


def stalls(dataset: Dataset, loss: Loss) -> Iterator[object]:
    """Yield the stall of each configuration, or counts of many."""
    rows, shares = dataset.measured, _shares(dataset, loss)
    waiting = []
    for configuration_id in rows["configuration_id"]:
        estimate = shares.get(configuration_id)
        if estimate is not None and estimate.error is not None:
            waiting.append(_stall(dataset, configuration_id, loss, estimate))
    if not waiting and loss == Loss.COMMUNICATION and len(rows):
        yield NoCommunication(bool((rows["exposed_communication_seconds"] == 0).all()))
    elif len(waiting) <= MAX_LINES:
        yield from waiting
    else:
        yield _counts(loss, waiting, shares)


def exposed_communication_share(dataset: Dataset, configuration_id: str) -> Number | None:
    """Return a configuration's exposed communication; None if unknown or uncertain."""
    estimate = _shares(dataset, Loss.COMMUNICATION).get(configuration_id)
    if estimate is None or estimate.error is None:
        return None
    share = number.share(estimate)
    return None if share.is_uncertain else share


def _stall(dataset: Dataset, configuration_id: str, loss: Loss, estimate: Estimate) -> Stall:
    included: list[Included] = []
    if loss == Loss.COMMUNICATION:
        included = _included(dataset, dataset.configuration_rows[configuration_id])
    return Stall(configuration_id, loss, number.share(estimate), tuple(included))


def _included(dataset: Dataset, row: Any) -> list[Included]:
    included = []
    if row.jitter_seconds and not is_missing(row.jitter_seconds):
        included.append(Included.JITTER)
    runs = dataset.select_runs(row.configuration_id)
    has_parts = (
        runs[["exposed_communication_seconds", "communication_seconds", "jitter_seconds"]].notna().all(axis="columns")
    )
    # Threads that compute and threads that communicate share cores, so their overlap is unknown.
    if (has_parts & runs["overlap"].isna()).any():
        included.append(Included.CONTENTION)
    return included


def _counts(loss: Loss, waiting: Sequence[Stall], shares: dict[str, Estimate]) -> StallCounts:
    confidence = 1 - (1 - CONFIDENCE) / len(waiting)
    above = below = 0
    only_uncorrected = []
    for stall in waiting:
        corrected = number.share(shares[stall.subject], confidence)
        if corrected.low > NEGLIGIBLE:
            above += 1
        elif corrected.high < NEGLIGIBLE:
            below += 1
        elif stall.share.low > NEGLIGIBLE:
            only_uncorrected.append(stall)
    return StallCounts(loss, len(waiting), above, below, NEGLIGIBLE, tuple(only_uncorrected))


@kept_with_dataset
def _shares(dataset: Dataset, loss: Loss) -> dict[str, Estimate]:
    """Return the mean share of each configuration that can wait at all."""
    runs = dataset.counted_runs
    samples = collect_samples(runs[loss], runs["configuration_id"], assign_rounds(runs, dataset.plan), dataset.looks)
    shares = {}
    for configuration_id, sample in samples.items():
        if sample.values.any():
            shares[configuration_id] = sample.estimate
    return shares
