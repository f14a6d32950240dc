"""On which page a diagnostic is shown, and how those of many runs become one row."""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.diagnostic import Severity
from dlperf_study.report.formatting import display_name, listed
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.missing import EXCHANGE_COLUMNS
from dlperf_study.report.tables.table import Cell
from dlperf_study.study.study import PUBLISHED, REPLICATION
from dlperf_study.wording import counted

QUALITY = "quality"
#: What is wrong with a run and makes its throughput uncertain: on the page on quality, and wherever there are rates.
_OF_THE_RATE = ("busy_cores", "cores", "drain_seconds", "skipped_steps", "steadiness")
#: What disturbed or slowed the devices of a run: on the pages on quality and on resources.
_OF_THE_DEVICES = (
    *("foreign_processes", "gpu_utilisation", "clock_limited_share", "sm_clock", "mean_power", "telemetry"),
)
_RATES = ("throughput", "token_throughput")
#: What is next to published numbers, on two pages.
_NEXT_TO_PUBLISHED = {*_RATES, "speedup", "efficiency", "computation_to_communication", *_OF_THE_RATE}
#: The subjects of diagnostics that belong on a page; on that on quality belongs what has no other page.
TOPICS = {
    "scaling": {*_RATES, "mean_of_rates", "baseline_throughput", "speedup", "efficiency", "mfu", *_OF_THE_RATE},
    "communication": {
        *EXCHANGE_COLUMNS,
        *("computation_seconds", "input_seconds", "input_rate", "step_seconds", "exchange", "load_balance", "trace"),
        "nccl_transports",
    },
    "resources": {*_OF_THE_DEVICES},
    "audit": {*_RATES, "speedup", "efficiency", "mfu", *_OF_THE_RATE},
    PUBLISHED: _NEXT_TO_PUBLISHED,
    REPLICATION: _NEXT_TO_PUBLISHED,
    "comparison": {
        *("throughput", "relative_throughput", "computation_seconds", "input_seconds", "exposed_seconds"),
        *_OF_THE_RATE,
    },
}
#: The pages on which diagnostics about logs are shown too: their rates were read from these.
_WITH_RATES = (QUALITY, *(topic for topic, subjects in TOPICS.items() if subjects.issuperset(_OF_THE_RATE)))
#: A number that measures something: no part of a name or version, no process, and no rank, which says who it was.
_NUMBER = re.compile(r"(?<![\w.-])(?<!rank )\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w:-]|\.\w)")


def belongs(subject: str, topic: str) -> bool:
    """Return whether diagnostics about a subject are shown on the page of a topic; every subject has a page."""
    if is_file(subject):
        return topic in _WITH_RATES
    if topic != QUALITY:
        return subject in TOPICS[topic]
    return subject in (*_OF_THE_RATE, *_OF_THE_DEVICES) or not any(subject in subjects for subjects in TOPICS.values())


def is_file(subject: str) -> bool:
    """Return whether a diagnostic is about a file: no column and no window has such letters in its name."""
    return "." in subject or "/" in subject


def without_numbers(message: str) -> str:
    """Return what messages have in common that differ only in what they measured."""
    return _NUMBER.sub("#", message)


def merged(messages: Iterable[str]) -> str:
    """Return messages that differ only in numbers as one, with the smallest and the largest of each number."""
    distinct = list(dict.fromkeys(messages))
    ranges = []
    for values in zip(*map(_NUMBER.findall, distinct), strict=True):
        low, high = min(values, key=float), max(values, key=float)
        ranges.append(low if float(low) == float(high) else f"{low} to {high}")
    remaining = iter(ranges)
    return _NUMBER.sub(lambda _: next(remaining), distinct[0])


def diagnostic_rows(dataset: Dataset, topic: str = "") -> Iterator[tuple[Cell, ...]]:
    """Yield a row for diagnostics of one severity and subject that differ only in numbers, the most severe first.

    Each configuration has its own rows for diagnostics about columns. What many logs have in common is one row.
    """
    rows = dataset.diagnostics.fillna({"identity": ""})
    severities = rows["severity"].map(list(reversed(Severity)).index)
    rows = rows.iloc[severities.astype("int64").argsort(kind="stable")]
    if topic:
        rows = rows[rows["subject"].map(partial(belongs, topic=topic)).astype(bool)]
    are_files = rows["subject"].map(is_file).astype(bool)
    identities, subjects = rows["identity"].mask(are_files, ""), rows["subject"].mask(are_files, "")
    keys = [rows["severity"], identities, subjects, rows["message"].map(without_numbers)]
    labels = configuration_labels(dataset)
    for _, group in rows.groupby(keys, sort=False):
        configurations = [labels.get(identity, identity) or "study" for identity in group["identity"].unique()]
        runs = sorted(group["repetition"].dropna().unique())
        yield (
            Cell(group["severity"].iloc[0]),
            Cell(listed(configurations)),
            Cell(", ".join(map(str, runs)) or "all"),
            _subject_cell(group["subject"].unique()),
            Cell(merged(group["message"])),
        )


def _subject_cell(subjects: list[str]) -> Cell:
    """Return what the diagnostics are about: a column by its label, a file by its name, several files as a count."""
    if len(subjects) > 1:
        return Cell(counted(len(subjects), "log"))
    [subject] = subjects
    if is_file(subject):
        return Cell(subject, code=True)
    return Cell(COLUMNS[subject].label if subject in COLUMNS else display_name(subject))
