"""Numbers that programs print: what they mean, and how they are written."""

from dataclasses import dataclass, replace
from enum import StrEnum

#: Where a line begins, after what launchers put before it: ``0: ``, ``[rank0]:``, ``[1,3]<stdout>:``, ``(x, pid=1)``.
LINE_START = r"^(?:\s*+(?:\[[^\]]*\](?:<\w+>)?:?|\d++: |\([^)]*\)))*+\s*+"
#: Characters of a number; converting it shows whether it is one.
NUMBER = r"[-+.\dEeNnAaIiFf]+"
#: A number with commas between its thousands.
THOUSANDS = r"\d{1,3}(?:,\d{3})++(?:\.\d++)?"
#: What changes the number before it: a comma with thousands or decimals, and a multiple.
_COMMA, _MULTIPLES = r",\d[\d.,]*+", "[kKMGT]"
#: Units of time by their size in seconds.
_TIMES = {1.0: "s|secs?|seconds?", 1e-3: "ms|msecs?|milliseconds?", 1e-6: "us|µs|usecs?|microseconds?"}
_LONG_TIMES = "mins?|minutes?|h|hours?"
#: What may directly follow a throughput, without a space.
_SAMPLES = "(?:im(?:g|age)s?|samples?|seqs?|sequences?|sentences?|examples?)/s(?:ec(?:ond)?)?"
#: Units of throughputs that do not count samples.
_NOT_SAMPLES = "(?:tok(?:en)?s?|tks|words?|steps?|batch(?:es)?)/s(?:ec(?:ond)?)?"
#: The inverse of a throughput, as s/step; and a throughput of a part of the job.
_INVERSE, _OF_A_PART = r"[mu]?s(?:ecs?|econds?)?/\w+", r"\w+/s(?:ec(?:ond)?)?(?:/| per )\w+"


class MetricScope(StrEnum):
    """Whether a number belongs to a rank, each device, or the job."""

    RANK = "rank"
    DEVICE = "device"
    JOB = "job"


_SCOPES = {MetricScope.RANK: "one process", MetricScope.DEVICE: "each device", MetricScope.JOB: "the job"}


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
        unit = "steps/s" if self.inverse else self.unit or "a throughput without a stated unit"
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


JOB_THROUGHPUT = PrintedMetric("throughput", "samples/s", MetricScope.JOB)
RANK_THROUGHPUT = PrintedMetric("throughput", "samples/s", MetricScope.RANK)
RANK_STEP = PrintedMetric("step_seconds", "s", MetricScope.RANK)
RANK_INTERVAL = PrintedMetric("step_seconds", "s", MetricScope.RANK, per="count")
#: Seconds that the whole job takes for a step, printed by one of its processes; or steps per second.
JOB_STEP = PrintedMetric("step_seconds", "s", MetricScope.JOB)
JOB_STEPS_THROUGHPUT = PrintedMetric("step_seconds", "s", MetricScope.JOB, inverse=True)
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
#: Throughputs of one name that count images, sequences or tokens: no line says which.
UNITLESS_THROUGHPUT = PrintedMetric("train_throughput", "", MetricScope.JOB)
UNITLESS_TOTAL = PrintedMetric("overall_train_throughput", "", MetricScope.JOB)
#: The Unix time at which a line was printed, if the line contains it after its prefix.
UNIX_TIME = PrintedMetric("time_seconds", "s", MetricScope.JOB)


def integer(name: str) -> str:
    """Return a named group for an integer without thousands separators."""
    return rf"(?P<{name}>\d++)(?!,\d)"


def number_before_unit(name: str) -> str:
    """Return a named group for a number next to its unit."""
    return rf"(?P<{name}>[\d.]++)"


def number(name: str) -> str:
    """Return a named group for a number, with an invalid suffix."""
    return rf"(?P<{name}>{NUMBER}+(?:{_COMMA}|{_MULTIPLES}\b)?+)"
