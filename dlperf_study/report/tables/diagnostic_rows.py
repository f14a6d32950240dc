"""Where a diagnostic is shown, and how those of many runs become one line."""

import re
from collections.abc import Iterable, Iterator
from functools import partial

import pandas as pd

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import human, listed
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.missing import EXCHANGE_COLUMNS
from dlperf_study.report.tables.table import Cell
from dlperf_study.wording import counted

QUALITY, PUBLISHED = "quality", "published"
#: What is wrong with a run and makes its throughput uncertain: on the page on quality, and wherever there are rates.
_OF_THE_RATE = ("cores", "drain_seconds", "settled_at_step")
#: The subjects of diagnostics that belong on a page; on that on quality belongs what has no other page.
TOPICS = {
    "scaling": {"throughput", "mean_of_rates", "baseline_throughput", "speedup", "efficiency", "mfu", *_OF_THE_RATE},
    "communication": {*EXCHANGE_COLUMNS, "computation_seconds", "step_seconds", "exchange", "trace"},
    "audit": {"throughput", "speedup", "efficiency", "mfu"},
    PUBLISHED: {"throughput", "speedup", "efficiency", "computation_to_communication", *_OF_THE_RATE},
    "comparison": {"throughput", "relative_throughput", "computation_seconds", "exposed_seconds", *_OF_THE_RATE},
}
#: The pages on which diagnostics about logs are shown too: their rates were read from these.
_WITH_RATES = (QUALITY, *(topic for topic, subjects in TOPICS.items() if subjects.issuperset(_OF_THE_RATE)))
#: A number that measures something: no part of a name or version, no process, and no rank, which says who it was.
_NUMBER = re.compile(r"(?<![\w.-])(?<!rank )\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w:-]|\.\w)")


def belongs(subject: str, topic: str) -> bool:
    """Say whether diagnostics about a subject are shown on the page of a topic; every subject has a page."""
    if is_file(subject):
        return topic in _WITH_RATES
    if topic != QUALITY:
        return subject in TOPICS[topic]
    return subject in _OF_THE_RATE or not any(subject in subjects for subjects in TOPICS.values())


def without_numbers(message: str) -> str:
    """Return what messages have in common that differ only in what they measured."""
    return _NUMBER.sub("#", message)


def merged(messages: Iterable[str]) -> str:
    """Return messages that differ only in numbers as one, with the smallest and the largest of each number."""
    distinct = list(dict.fromkeys(messages))
    ranges = iter([_range(numbers) for numbers in zip(*map(_NUMBER.findall, distinct), strict=True)])
    return _NUMBER.sub(lambda _: next(ranges), distinct[0])


def _range(numbers: tuple[str, ...]) -> str:
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if float(low) == float(high) else f"{low} to {high}"


def diagnostic_rows(dataset: Dataset, topic: str = "") -> Iterator[tuple[Cell, ...]]:
    """Yield a row for diagnostics of one severity and subject that differ only in numbers, errors first.

    Those about columns are told apart by configuration. What is wrong with many logs alike is said once for all.
    """
    rows = dataset.diagnostics.fillna({"identity": ""}).sort_values("severity", key=_errors_first, kind="stable")
    rows = rows[rows["subject"].map(partial(belongs, topic=topic)).astype(bool)] if topic else rows
    files = rows["subject"].map(is_file).astype(bool)
    keys = [
        rows["severity"],
        rows["identity"].mask(files, ""),
        rows["subject"].mask(files, ""),
        rows["message"].map(without_numbers),
    ]
    labels = configuration_labels(dataset)
    for _, group in rows.groupby(keys, sort=False):
        yield _diagnostic_row(labels, group)


def _diagnostic_row(labels: dict[str, str], group: pd.DataFrame) -> tuple[Cell, ...]:
    where = listed([labels.get(identity, identity) or "study" for identity in group["identity"].unique()])
    runs = ", ".join(str(value) for value in sorted(group["repetition"].dropna().unique())) or "all"
    first = Cell(group["severity"].iloc[0])
    return first, Cell(where), Cell(runs), _subject(group["subject"]), Cell(merged(group["message"]))


def _errors_first(severities: pd.Series) -> pd.Series:
    return severities != "error"


def is_file(subject: str) -> bool:
    """Say whether a diagnostic is about a file: no column and no window has such letters in its name."""
    return "." in subject or "/" in subject


def _subject(subjects: pd.Series) -> Cell:
    """Return what is diagnosed: a column by its label, a file by its name, several by their number."""
    first, *others = subjects.unique()
    if others:
        return Cell(counted(len(others) + 1, "log"))
    return (
        Cell(first, code=True) if is_file(first) else Cell(COLUMNS[first].label if first in COLUMNS else human(first))
    )
