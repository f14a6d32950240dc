"""Formats of logs: declared lines and the meaning of their numbers.

Patterns are regular expressions over one line. The head of a line recognises it and captures named groups: ``epoch``,
``step``, ``rank``, ``count`` (the number of steps that the number covers), or a metric of ``captured``. Fields are
searched after the head, in order; each is optional, because programs gain and lose fields.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dlperf_study.logs.printed import INTERVALS, PrintedMetric

#: A tab in lines that are kept as strings of JSON, as Docker does.
_ESCAPED_TAB = r"(?<=\\t)"


class Merge(StrEnum):
    """How the numbers of several ranks become the job's."""

    ONE = "one rank prints the number of the whole job"
    COPIES = "every rank prints the number of the whole job: the median of the copies, never their sum"
    SUM = "every rank prints its own throughput: the job's is the sum over all ranks"
    SLOWEST = "every rank prints its own time: the job's is that of the slowest rank"
    AS_NAMED = "each number is what its name says; nothing is merged"


@dataclass(frozen=True)
class Field:
    """A number after a literal; ``between`` matches the text in between."""

    metric: PrintedMetric
    literal: str
    between: str = r"\s*[:=]?\s*"

    def expression(self, group: str) -> str:
        """Return its expression; the group includes a rejected suffix."""
        start = ""
        if re.match(r"\w", self.literal):
            start = rf"(?:(?<!\w)|{_ESCAPED_TAB})"
        number = rf"(?P<{group}>{self.metric.number}(?:{self.metric.rejected_suffix})?+)"
        return rf"{start}{re.escape(self.literal)}{self.between}{number}"


@dataclass(frozen=True)
class Line:
    """One kind of line; every line contains one of the ``needles``."""

    needles: tuple[str, ...]
    head: str
    fields: tuple[Field, ...] = ()
    captured: tuple[PrintedMetric, ...] = ()
    training: bool = True

    @property
    def metrics(self) -> tuple[PrintedMetric, ...]:
        """Every metric that it may contain."""
        return *self.captured, *(field.metric for field in self.fields)


@dataclass(frozen=True)
class JsonRecord:
    """Position and metrics of one JSON line."""

    values: Mapping[str, float]
    epoch: int = -1
    step: int = -1
    rank: int = -1
    time_seconds: float = float("nan")
    training: bool = True


@dataclass(frozen=True)
class JsonLine:
    """A line with a JSON object after its needle.

    ``record`` returns the numbers of an object, or None; ``facts`` its statements about the whole run, or None. Both
    raise KeyError, TypeError or ValueError for another form. ``metrics``: the numbers with a known meaning, or without
    a unit.
    """

    needles: tuple[str, ...]
    record: Callable[[Mapping[str, Any]], JsonRecord | None]
    facts: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    metrics: tuple[PrintedMetric, ...] = ()


@dataclass(frozen=True)
class Fact:
    """A statement of a log about its run; the group is its value."""

    name: str
    pattern: str


@dataclass(frozen=True)
class Format:
    """The format of one program's log.

    ``throughput_metrics``: metrics for the job's throughput, the best first. ``steps``: what a step number counts.
    ``traps``: typical errors of readers. ``synchronous``: ranks step together, so one rank's time is the job's.
    ``counts_updates``: a step is an update of the model. ``carries_steps``, ``carries_epochs``: some lines take the
    step or epoch of the line before. ``zero_in_evaluation``: a metric that is 0 on lines of evaluation, which look like
    lines of training. ``synthetic_data_only``: the program trains only on data that it makes itself.
    ``first_true_step``: earlier steps are not waited for, so their numbers are wrong. ``device_throughput_facts``:
    facts with the values that make a throughput of the job the throughput of each device. ``no_throughput_reason``: why
    a log may have no throughput. ``closing_metric``: printed at the end; a log without it may be truncated.
    ``dlperf_steps``: the steps of DLPerf's extractor, from 1: the first, and the one after the last; None without such
    an extractor. ``dlperf_slices_lines``: the extractor counts lines, not step numbers.
    """

    name: str
    title: str
    program: str
    lines: tuple[Line | JsonLine, ...]
    throughput_metrics: tuple[str, ...]
    merge: Merge
    steps: str
    traps: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    synchronous: bool = True
    counts_updates: bool = True
    carries_steps: bool = False
    zero_in_evaluation: str = ""
    synthetic_data_only: bool = False
    carries_epochs: bool = False
    first_true_step: int = 0
    device_throughput_facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    no_throughput_reason: str = ""
    closing_metric: str = ""
    dlperf_steps: tuple[int, int] | None = None
    dlperf_slices_lines: bool = False

    @property
    def metrics(self) -> dict[str, PrintedMetric]:
        """The declared and the computed metrics by name."""
        declared = {}
        for line in self.lines:
            for metric in line.metrics:
                declared[metric.name] = metric
        intervals = {}
        for name in declared.keys() & INTERVALS.keys():
            intervals[INTERVALS[name].name] = INTERVALS[name]
        return intervals | declared
