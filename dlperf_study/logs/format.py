"""What logs print most often, each in the words of our own columns."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# How programs write numbers and their units, as regular expressions: what is one number, and what makes it another.


#: What may stand for a number; whether it is one is found out when it is converted.
NUMBER = r"[-+.\dEeNnAaIiFf]+"
#: What makes a number another one than its first digits: thousands or decimals behind a comma, and a multiple.
COMMA, MULTIPLES = r",\d[\d.,]*+", "[kKMGT]"
#: Units of time, by what one of them lasts in seconds.
_TIMES = {1.0: "s|secs?|seconds?", 1e-3: "ms|msecs?|milliseconds?", 1e-6: "us|µs|usecs?|microseconds?"}
_LONG_TIMES = "mins?|minutes?|h|hours?"
#: What may stand right behind a rate, without a space.
_COUNTED = "(?:im(?:g|age)s?|samples?|seqs?|sequences?|sentences?|examples?)/s(?:ec(?:ond)?)?"
#: What else a rate may count, so that it is none of samples.
_UNCOUNTED = "(?:tok(?:en)?s?|tks|words?|steps?|batch(?:es)?)/s(?:ec(?:ond)?)?"
#: What turns a rate round, as in s/step, and what makes one of the whole job that of a part of it.
_TURNED, _OF_A_PART = r"[mu]?s(?:ecs?|econds?)?/\w+", r"\w+/s(?:ec(?:ond)?)?(?:/| per )\w+"


def another(unit: str, factor: float, of_job: bool) -> str:
    """Return what, behind a number, makes it another one: digits, letters, another unit than ours × ``factor``.

    ``of_job``: the number is of the whole job, so that one of a part of it is another.
    """
    own, foreign = _of_times(factor) if unit == "s" else _of_rates(unit, factor, of_job)
    return rf"{COMMA}|(?!(?:{own})(?!\w))\w+|\s+(?:{foreign})\b"


def _of_times(factor: float) -> tuple[str, str]:
    """Return what may stand behind a time, and what may not."""
    others = (names for size, names in _TIMES.items() if size != factor)
    return _TIMES.get(factor, ""), "|".join([*others, _LONG_TIMES, r"\w+/s(?:ec(?:ond)?)?"])


def _of_rates(unit: str, factor: float, of_job: bool) -> tuple[str, str]:
    """Return what may stand behind a rate, or any other number, and what may not."""
    foreign = rf"{MULTIPLES}|\w+/(?:ms|mins?|minute|h|hour)" if factor == 1 else "[MGT]"
    parts = [
        *([_OF_A_PART] if of_job else []),
        *(foreign, _TURNED),
        *([_UNCOUNTED] if unit == "samples/s" else []),
    ]
    return _COUNTED if factor == 1 else "K", "|".join(parts)


# What a format of log is: one declaration per program, read by one engine for all.
#
# Patterns are regular expressions over one line. A head recognises the line and says where in the training it was
# printed, by its named groups: ``epoch``, ``step``, ``rank``, ``count`` (how many steps the number covers), or the
# name of a metric of ``captured``. Fields are looked for behind the head, in order, each one optional: programs gain
# and lose them from version to version.


#: A tab as those write it who keep lines as texts of JSON, as Docker does.
_TAB = r"(?<=\\t)"
TRAINING, VALIDATION = "training", "validation"


class Scope(StrEnum):
    """Whose number it is."""

    RANK = "rank"
    JOB = "job"


class Merge(StrEnum):
    """How the numbers of several ranks become the job's."""

    ONE = "one rank prints the number of the whole job"
    COPIES = "every rank prints the number of the whole job: the median of the copies, never their sum"
    SUM = "every rank prints its own rate: the job's is the sum over all ranks"
    SLOWEST = "every rank prints its own time: the job's is that of the slowest rank"
    AS_NAMED = "each number is what its name says; nothing is merged"


@dataclass(frozen=True)
class Metric:
    """What a number means: printed × ``factor``, divided by the group ``per`` where there is one, is in ``unit``."""

    name: str
    unit: str
    scope: Scope
    factor: float = 1.0
    per: str = ""

    @property
    def another(self) -> str:
        """What, behind a printed number, makes it another one than this."""
        return another(self.unit, self.factor, self.scope is Scope.JOB)


@dataclass(frozen=True)
class Field:
    """A number behind a literal; ``between`` is what stands between the two."""

    metric: Metric
    literal: str
    between: str = r"\s*[:=]?\s*"

    def expression(self, group: str) -> str:
        """Return what it looks like, its name no part of a longer one; with what makes a number none in the group."""
        start = rf"(?:(?<!\w)|{_TAB})" if re.match(r"\w", self.literal) else ""
        number = rf"(?P<{group}>{NUMBER}+(?:{self.metric.another})?+)"
        return rf"{start}{re.escape(self.literal)}{self.between}{number}"


@dataclass(frozen=True)
class Line:
    """One kind of line, one record each: every line of the kind holds one of the ``needles``, once."""

    needles: tuple[str, ...]
    head: str
    fields: tuple[Field, ...] = ()
    captured: tuple[Metric, ...] = ()
    window: str = TRAINING

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Every metric it may hold."""
        return (*self.captured, *(field.metric for field in self.fields))


@dataclass(frozen=True)
class Entry:
    """What one line of JSON says: where, and its numbers by metric."""

    values: Mapping[str, float]
    epoch: int = -1
    step: int = -1
    rank: int = -1
    time_seconds: float = float("nan")
    window: str = TRAINING


@dataclass(frozen=True)
class JsonLine:
    """A line that holds a JSON object behind its needle.

    ``entry`` returns its numbers, or None for an object without any; ``facts`` what it says about the whole run.
    Both raise KeyError, TypeError or ValueError for an object that is not what it should be. ``metrics``: those of its
    numbers whose meaning is known, or of which it is known that no line says the unit.
    """

    needles: tuple[str, ...]
    entry: Callable[[Mapping[str, Any]], Entry | None]
    facts: Callable[[Mapping[str, Any]], Mapping[str, str]]
    metrics: tuple[Metric, ...] = ()


@dataclass(frozen=True)
class Fact:
    """Something a log states about the whole run; the pattern's one group is its value."""

    name: str
    pattern: str


@dataclass(frozen=True)
class Format:
    """How one program prints.

    ``rates``: the metrics from which the job's rate can be had, the best first.
    ``steps``: what a step number counts. ``traps``: what readers got wrong, or may.
    ``synchronous``: every rank takes the same step together, so that one rank's time is the job's.
    ``carries_steps``: some lines have no step of their own and belong to that of the line before.
    ``zero_in_evaluation``: a metric that is 0 on lines of evaluation, which look as those of training do.
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
    carries_steps: bool = False
    zero_in_evaluation: str = ""

    @property
    def metrics(self) -> dict[str, Metric]:
        """The declared metrics by name."""
        return {metric.name: metric for line in self.lines for metric in line.metrics}


def whole(name: str) -> str:
    """Return a named group for a whole number, which has no comma between its thousands."""
    return rf"(?P<{name}>\d++)(?!,\d)"


def number(name: str) -> str:
    """Return a named group for a number, with what makes it none."""
    return rf"(?P<{name}>{NUMBER}+(?:{COMMA}|{MULTIPLES}\b)?+)"


JOB_RATE = Metric("throughput", "samples/s", Scope.JOB)
RANK_RATE = Metric("throughput", "samples/s", Scope.RANK)
RANK_STEP = Metric("step_seconds", "s", Scope.RANK)
RANK_READER = Metric("reader_seconds", "s", Scope.RANK)
LOSS = Metric("loss", "", Scope.RANK)
#: What the program itself sums up at its end, or at the end of an epoch.
JOB_TOTAL = Metric("overall_throughput", "samples/s", Scope.JOB)
RANK_TOTAL = Metric("overall_throughput", "samples/s", Scope.RANK)
#: Rates that programs call the same, whether they count images, sequences or tokens: no line says which.
UNITLESS_RATE = Metric("train_throughput", "", Scope.JOB)
UNITLESS_TOTAL = Metric("overall_train_throughput", "", Scope.JOB)
#: A number that another divides: seconds per ``count`` steps.
RANK_INTERVAL = Metric("step_seconds", "s", Scope.RANK, per="count")
#: The Unix time a line was printed at, where it says so outside its prefix.
UNIX_TIME = Metric("time_seconds", "s", Scope.JOB)
