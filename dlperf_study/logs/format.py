"""What a format of log is: one declaration per program, read by one engine for all.

Patterns are regular expressions over one line. A head recognises the line and says where in the training it was
printed, by its named groups: ``epoch``, ``step``, ``rank``, ``count`` (how many steps the number covers), or the name
of a metric of ``captured``. Fields are looked for behind the head, in order, each one optional: programs gain and lose
them from version to version.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dlperf_study.logs.units import COMMA, MULTIPLES, NUMBER, another

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
