"""Formats of logs: declared lines and the meaning of their numbers.

Patterns are regular expressions over one line. The head of a line recognises it and captures named groups: ``epoch``,
``step``, ``rank``, ``count`` (the number of steps that the number covers), or a metric of ``captured``. Fields are
searched after the head, in order; each is optional, because programs gain and lose fields.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class MetricScope(StrEnum):
    """Whether a number belongs to a rank, each device, or the job."""

    RANK = "rank"
    DEVICE = "device"
    JOB = "job"


class Merge(StrEnum):
    """How the numbers of several ranks become the job's."""

    ONE = "one rank prints the number of the whole job"
    COPIES = "every rank prints the number of the whole job: the median of the copies, never their sum"
    SUM = "every rank prints its own rate: the job's is the sum over all ranks"
    SLOWEST = "every rank prints its own time: the job's is that of the slowest rank"
    AS_NAMED = "each number is what its name says; nothing is merged"


@dataclass(frozen=True)
class PrintedMetric:
    """The meaning of a number: number × ``factor`` / group ``per`` is in ``unit``.

    ``inverse``: it is 1 / number instead. ``has_thousands``: commas separate thousands. ``cumulative``: the number is a
    mean over all steps so far; if it ``restarts_each_epoch``, over the steps of the epoch.
    """

    name: str
    unit: str
    scope: MetricScope
    factor: float = 1.0
    per: str = ""
    cumulative: bool = False
    restarts_each_epoch: bool = False
    inverse: bool = False
    has_thousands: bool = False

    @property
    def in_milliseconds(self) -> "PrintedMetric":
        """The same, printed in milliseconds."""
        return replace(self, factor=1e-3)

    @property
    def printed(self) -> str:
        """Unit and scope of the printed number."""
        unit = "steps/s" if self.inverse else self.unit or "a rate of no stated unit"
        since = "the start"
        if self.restarts_each_epoch:
            since = "each epoch began"
        return f"{unit} of {_SCOPES[self.scope]}{f', a mean since {since}' * self.cumulative}"

    @property
    def number(self) -> str:
        """An expression for its number."""
        if self.has_thousands:
            return rf"(?:{THOUSANDS}|{NUMBER}+)"
        return rf"{NUMBER}+"

    @property
    def rejected_suffix(self) -> str:
        """Expression for a suffix that rules out this metric."""
        if self.unit == "s" and self.inverse:
            allowed, rejected = "it/s", [_MULTIPLES]
        elif self.unit == "s":
            allowed = _TIMES.get(self.factor, "")
            rejected = [names for size, names in _TIMES.items() if size != self.factor]
            rejected += [_LONG_TIMES, r"\w+/s(?:ec(?:ond)?)?"]
        else:
            allowed = _SAMPLES if self.factor == 1 else "K"
            rejected = [_OF_A_PART] if self.scope is MetricScope.JOB else []
            rejected.append(rf"{_MULTIPLES}|\w+/(?:ms|mins?|minute|h|hour)" if self.factor == 1 else "[MGT]")
            rejected.append(_INVERSE)
        if self.unit == "samples/s":
            rejected.append(_NOT_SAMPLES)
        return rf"{_COMMA}|(?!(?:{allowed})(?!\w))\w+|\s+(?:{'|'.join(rejected)})\b"


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

    ``rates``: metrics for the job's rate, the best first. ``steps``: what a step number counts. ``traps``: typical
    errors of readers. ``synchronous``: ranks step together, so one rank's time is the job's. ``counts_updates``: a step
    is an update of the model. ``carries_steps``, ``carries_epochs``: some lines take the step or epoch of the line
    before. ``zero_in_evaluation``: a metric that is 0 on lines of evaluation, which look like lines of training.
    ``synthetic_data_only``: the program trains only on data that it makes itself. ``first_true_step``: earlier steps
    are not waited for, so their numbers are wrong. ``device_rate_facts``: facts with the values that make a rate of the
    job the rate of each device. ``no_rate_reason``: why a log may have no rate. ``closing_metric``: printed at the end;
    a log without it may be truncated. ``dlperf_steps``: the steps of DLPerf's extractor, from 1: the first, and the one
    after the last; None without such an extractor. ``dlperf_slices_lines``: the extractor counts lines, not step
    numbers.
    """

    name: str
    title: str
    program: str
    lines: tuple[Line | JsonLine, ...]
    rates: tuple[str, ...]
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
    device_rate_facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    no_rate_reason: str = ""
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


JOB_RATE = PrintedMetric("throughput", "samples/s", MetricScope.JOB)
RANK_RATE = PrintedMetric("throughput", "samples/s", MetricScope.RANK)
RANK_STEP = PrintedMetric("step_seconds", "s", MetricScope.RANK)
RANK_INTERVAL = PrintedMetric("step_seconds", "s", MetricScope.RANK, per="count")
#: Seconds that the whole job takes for a step, printed by one of its processes; or steps per second.
JOB_STEP = PrintedMetric("step_seconds", "s", MetricScope.JOB)
JOB_STEPS_RATE = PrintedMetric("step_seconds", "s", MetricScope.JOB, inverse=True)
DEVICE_TOKENS = PrintedMetric("throughput", "tokens/s", MetricScope.DEVICE)
JOB_TOKENS = PrintedMetric("token_throughput", "tokens/s", MetricScope.JOB)
#: Seconds since the training began, from which those of a step, or of an epoch, are computed.
ELAPSED = PrintedMetric("elapsed_seconds", "s", MetricScope.JOB)
ELAPSED_OF_EPOCHS = PrintedMetric("elapsed_epoch_seconds", "s", MetricScope.JOB)
EPOCH_SECONDS = PrintedMetric("epoch_seconds", "s", MetricScope.JOB)
ELAPSED_OF_SAMPLES = PrintedMetric("elapsed_sample_seconds", "s", MetricScope.JOB)
SAMPLE_SECONDS = PrintedMetric("sample_seconds", "s", MetricScope.JOB)
#: What is computed from the time since the start, by the name of the metric.
INTERVALS = {ELAPSED.name: JOB_STEP, ELAPSED_OF_EPOCHS.name: EPOCH_SECONDS, ELAPSED_OF_SAMPLES.name: SAMPLE_SECONDS}
RANK_READER = PrintedMetric("reader_seconds", "s", MetricScope.RANK)
LOSS = PrintedMetric("loss", "", MetricScope.RANK)
JOB_TOTAL = PrintedMetric("overall_throughput", "samples/s", MetricScope.JOB)
RANK_TOTAL = PrintedMetric("overall_throughput", "samples/s", MetricScope.RANK)
#: Rates of one name that count images, sequences or tokens: no line says which.
UNITLESS_RATE = PrintedMetric("train_throughput", "", MetricScope.JOB)
UNITLESS_TOTAL = PrintedMetric("overall_train_throughput", "", MetricScope.JOB)
#: The Unix time at which a line was printed, if the line contains it after its prefix.
UNIX_TIME = PrintedMetric("time_seconds", "s", MetricScope.JOB)


#: Where a line begins, after what launchers put before it: ``0: ``, ``[rank0]:``, ``[1,3]<stdout>:``, ``(x, pid=1)``.
LINE_START = r"^(?:\s*+(?:\[[^\]]*\](?:<\w+>)?:?|\d++: |\([^)]*\)))*+\s*+"
#: Characters of a number; converting it shows whether it is one.
NUMBER = r"[-+.\dEeNnAaIiFf]+"
#: A number with commas between its thousands.
THOUSANDS = r"\d{1,3}(?:,\d{3})++(?:\.\d++)?"
_SCOPES = {MetricScope.RANK: "one process", MetricScope.DEVICE: "each device", MetricScope.JOB: "the job"}
#: What changes the number before it: a comma with thousands or decimals, and a multiple.
_COMMA, _MULTIPLES = r",\d[\d.,]*+", "[kKMGT]"
#: A tab in lines that are kept as strings of JSON, as Docker does.
_ESCAPED_TAB = r"(?<=\\t)"
#: Units of time by their size in seconds.
_TIMES = {1.0: "s|secs?|seconds?", 1e-3: "ms|msecs?|milliseconds?", 1e-6: "us|µs|usecs?|microseconds?"}
_LONG_TIMES = "mins?|minutes?|h|hours?"
#: What may directly follow a rate, without a space.
_SAMPLES = "(?:im(?:g|age)s?|samples?|seqs?|sequences?|sentences?|examples?)/s(?:ec(?:ond)?)?"
#: Units of rates that do not count samples.
_NOT_SAMPLES = "(?:tok(?:en)?s?|tks|words?|steps?|batch(?:es)?)/s(?:ec(?:ond)?)?"
#: The inverse of a rate, as s/step; and a rate of a part of the job.
_INVERSE, _OF_A_PART = r"[mu]?s(?:ecs?|econds?)?/\w+", r"\w+/s(?:ec(?:ond)?)?(?:/| per )\w+"


def integer(name: str) -> str:
    """Return a named group for an integer without thousands separators."""
    return rf"(?P<{name}>\d++)(?!,\d)"


def number_before_unit(name: str) -> str:
    """Return a named group for a number next to its unit."""
    return rf"(?P<{name}>[\d.]++)"


def number(name: str) -> str:
    """Return a named group for a number, with an invalid suffix."""
    return rf"(?P<{name}>{NUMBER}+(?:{_COMMA}|{_MULTIPLES}\b)?+)"
