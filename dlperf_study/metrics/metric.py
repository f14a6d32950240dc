"""Declaration of a metric: column, formula, summary and reasons for gaps.

A family of metrics is one file of this folder, with its formulas before its ``METRICS``; ``columns.py`` lists the
families. The tables of the dataset, ``docs/columns.md`` and the cells of the report are derived from them.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dlperf_study.core.errors import Diagnostic
from dlperf_study.core.wording import in_sentence
from dlperf_study.study.grid import Denominator
from dlperf_study.study.program import OWN_PROGRAM
from dlperf_study.study.study import COMPARISON, PUBLISHED

if TYPE_CHECKING:
    import pandas as pd

    from dlperf_study.records.run import Run


class TableName(StrEnum):
    """Tables of the dataset, and of published numbers."""

    RUNS = "runs"
    STEPS = "steps"
    CONFIGURATIONS = "configurations"
    DIAGNOSTICS = "diagnostics"
    PUBLISHED = "published"


DATASET_TABLES = (TableName.RUNS, TableName.STEPS, TableName.CONFIGURATIONS, TableName.DIAGNOSTICS)


class Dtype(StrEnum):
    """Type of a column in pandas; capitalised types may be missing."""

    STRING = "str"
    CATEGORY = "category"
    INTEGER = "int64"
    OPTIONAL_INTEGER = "Int64"
    FLOAT = "float64"
    FLAG = "bool"
    OPTIONAL_FLAG = "boolean"


#: Short names, so that a declaration stays short.
R, C = (TableName.RUNS,), (TableName.CONFIGURATIONS,)
RC = (TableName.RUNS, TableName.CONFIGURATIONS)
RS = (TableName.RUNS, TableName.STEPS)
P = (TableName.PUBLISHED,)
RP, RCP = (TableName.RUNS, *P), (*RC, *P)
ALL = DATASET_TABLES
S = (TableName.STEPS,)
D = (TableName.DIAGNOSTICS,)


class Source(Enum):
    """What the value of a metric is computed from."""

    RUN = auto()
    COMPLETED_RUN = auto()
    STEADINESS = auto()
    ENTRY = auto()
    NCCL_REPORT = auto()
    BATCH_SEARCH = auto()


class Summary(Enum):
    """How configurations summarise their completed runs.

    GEOMETRIC: of throughputs, the geometric mean. MEAN: of signed values. POSITIVE_MEAN: of positive values, as times.
    SHARE: of a difference as a share of a whole, at most 1. All four have an interval. FACT: equal for all runs, else
    the median. LARGEST: of all runs.
    """

    GEOMETRIC = auto()
    MEAN = auto()
    POSITIVE_MEAN = auto()
    SHARE = auto()
    FACT = auto()
    LARGEST = auto()


MEANS = (Summary.MEAN, Summary.POSITIVE_MEAN, Summary.SHARE)
WITH_INTERVAL = (Summary.GEOMETRIC, *MEANS)


class Shown(Enum):
    """How a table of configurations shows a metric.

    NUMBER: in the unit of the column, with its interval. DENOMINATOR: the same without its interval. PLAIN: a count or
    text. SENTENCE: unchanged, with names of files. VERDICT: a word, with the margin of equality.
    """

    NUMBER = auto()
    DENOMINATOR = auto()
    PLAIN = auto()
    SENTENCE = auto()
    SIGNIFICANCE = auto()


#: What is the same within a study is the same for all of its runs.
STUDY = "study"
#: Pages on which diagnostics are shown, besides those of the study's questions.
QUALITY, SCALING, COMMUNICATION, RESOURCES, AUDIT = "quality", "scaling", "communication", "resources", "audit"
RATIO_PAGES = (SCALING, AUDIT, PUBLISHED)
#: What is wrong with a run and makes its throughput uncertain is shown on the page on quality, and where throughputs
#: are.
THROUGHPUT_PAGES = (QUALITY, *RATIO_PAGES, COMPARISON)
DEVICE_PAGES = (QUALITY, RESOURCES)


class Gap(Protocol):
    """A configuration with completed runs but without a metric."""

    row: Any

    @property
    def runs(self) -> "pd.DataFrame":
        """Its completed runs."""

    def has(self, name: str) -> bool:
        """Return whether it has a value of another metric."""

    def messages(self, subject: str) -> list[str]:
        """Return the messages of its diagnostics about a subject."""

    def ratio_obstacle(self, role: Denominator) -> str:
        """Return why it can't be compared with its baseline or reference."""

    def difference_obstacle(self, needs_significance: bool) -> str:
        """Return why its breakdown can't be compared with the reference's."""


#: A sentence, or a condition that returns one where it holds and else an empty string.
Reason = str | Callable[[Gap], str]


def only_in_tokens(gap: Gap) -> str:
    """Return why a throughput is in tokens only; else empty."""
    if gap.has("throughput") or not gap.has("token_throughput"):
        return ""
    if gap.row.framework == OWN_PROGRAM:
        return "its work is counted in tokens, and how many tokens a sample has is not known"
    return "its logs state tokens/s, and not how many tokens a sample has"


def not_measured_by_program(gap: Gap) -> str:
    """Return why a user's program has no such value; else empty."""
    return not_measured_in_run(gap.row)


def not_measured_in_run(row: Any) -> str:
    """Return the same for a row of runs."""
    if getattr(row, "framework", "") == OWN_PROGRAM:
        return "its program does not measure it"
    return ""


def reason_if(condition: Callable[[Any], object], reason: str) -> Callable[[Any], str]:
    """Return a reason that holds under a condition on a gap, or a row of a run."""
    return lambda gap: reason if condition(gap) else ""


def no_ratio_to(role: Denominator) -> Reason:
    """Return why a comparison with a baseline or reference is missing."""
    return lambda gap: gap.ratio_obstacle(role)


#: Yields what may be wrong about a number of a run, with the number; of a run, or of what ``source`` says.
Diagnose = Callable[[Any], Iterator[Diagnostic]]


@dataclass(frozen=True)
class Metric:
    """One column of the dataset, with the same meaning in every table.

    Attributes:
        name, label, definition, unit, dtype: as its column has them.
        tables: which have it.
        value: its formula, of a thing of ``source``; None if several things give it.
        summary: what the table of configurations has of its runs; ``decimals``: of a FACT; ``limits``: between which
            the true value must be, as 0 and 1 of a share: there a mean and its interval are cut off.
        smallest: below it, a mean of runs is not summarised.
        only_if_all: it is summarised only if every run with this other metric has it.
        interval: the subject of its 95 % CI, which makes two more columns; empty without one.
        missing: why a configuration has no value, the first reason that holds; ``missing_of_run``: of a run.
        compared_with: what a ratio or difference is relative to; ``of_itself``: the value for the baseline;
            ``neutral``: the value without a difference.
        part_of: it is shown in the unit of this metric, so that a reader can add the parts up.
        shown: how a cell shows it; ``explained_by``: the metric of a run with the sentence of its footnote;
            ``at_least_without``: the metric without which the value is a lower bound.
        pages: where diagnostics about it are shown; none: on the page on quality.
        subject: the name of its diagnostics, if it isn't its own; ``related``: others that are shown with it;
            ``of_logs``: so are those about logs.
        diagnose: what may be wrong about it in a completed run; ``diagnose_any``: in any run.
        same_within: which completed runs must have the same value: of the STUDY, or those with one value of the
            parameter of this name; empty if they may differ.
    """

    name: str
    label: str
    definition: str
    tables: tuple[TableName, ...] = RC
    unit: str = ""
    dtype: Dtype = Dtype.FLOAT
    value: Callable[[Any], Any] | None = None
    source: Source = Source.COMPLETED_RUN
    summary: Summary | None = None
    decimals: int = 0
    limits: tuple[float, float] = (-math.inf, math.inf)
    smallest: float = -math.inf
    only_if_all: str = ""
    interval: str = ""
    missing: tuple[Reason, ...] = ()
    missing_of_run: str | Callable[[Any], str] = ""
    compared_with: Denominator | None = None
    of_itself: str = ""
    neutral: float | None = None
    part_of: str = ""
    shown: Shown = Shown.NUMBER
    explained_by: str = ""
    at_least_without: str = ""
    pages: tuple[str, ...] = ()
    subject: str = ""
    related: tuple[str, ...] = ()
    of_logs: bool = False
    diagnose: Diagnose | None = None
    diagnose_any: Diagnose | None = None
    same_within: str = ""

    @property
    def words(self) -> str:
        """Its label as words of a sentence."""
        return in_sentence(self.label)

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.dtype in (Dtype.INTEGER, Dtype.OPTIONAL_INTEGER, Dtype.FLOAT)

    @property
    def columns(self) -> tuple["Metric", ...]:
        """Itself, and the columns of its interval, which configurations have."""
        if not self.interval and self.summary not in WITH_INTERVAL:
            return (self,)
        columns = [self]
        for short, end in (("low", "lower"), ("high", "upper")):
            definition = f"{end} bound of the 95 % CI {self.interval or 'of the mean'}"
            name, label = f"{self.name}_{short}", f"{self.label}, {short}"
            columns.append(Metric(name, label, definition, C, unit=self.unit, dtype=self.dtype))
        return tuple(columns)

    def dtype_in(self, table: TableName) -> Dtype:
        """Return its type in a table."""
        if table is TableName.STEPS and self.dtype is Dtype.STRING:
            return Dtype.CATEGORY
        if table is TableName.PUBLISHED and self.dtype is Dtype.INTEGER:
            return Dtype.OPTIONAL_INTEGER
        return self.dtype


#: Metrics that are texts, and whole numbers that may be missing.
text = partial(Metric, dtype=Dtype.STRING)
whole_number = partial(Metric, dtype=Dtype.OPTIONAL_INTEGER)


def list_names(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return the names of metrics."""
    return tuple(metric.name for metric in metrics)


def recorded(
    name: str,
    label: str,
    definition: str,
    value: Callable[[Any], Any],
    tables: tuple[TableName, ...] = R,
    dtype: Dtype = Dtype.STRING,
    **options: Any,
) -> Metric:
    """Return the metric of a fact in the record of any run."""
    return Metric(name, label, definition, tables, dtype=dtype, value=value, source=Source.RUN, **options)


Result = TypeVar("Result")
Item = TypeVar("Item")


def if_complete(values: Iterable[Item | None]) -> list[Item]:
    """Return values, or none of them where one is missing."""
    complete: list[Item] = []
    for value in values:
        if value is None:
            return []
        complete.append(value)
    return complete


def once_per_run(formula: "Callable[[Run], Result]") -> "Callable[[Run], Result]":
    """Let a formula compute its value once per run."""

    @wraps(formula)
    def kept(run: "Run") -> Result:
        values = vars(run).setdefault("_formulas", {})
        if formula not in values:
            values[formula] = formula(run)
        value: Result = values[formula]
        return value

    return kept
