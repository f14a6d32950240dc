"""Cells of a table of configurations or runs: a value with its interval and diagnostics, or why it is missing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import EQUAL, RATIOS
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.configuration_table import VERDICTS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import formatting
from dlperf_study.report.formatting import Unit, bounded_value, display_name, is_missing, listed, unit_of
from dlperf_study.report.links import evidence_anchor
from dlperf_study.report.tables.diagnostic_rows import is_file, merged, without_numbers
from dlperf_study.report.tables.missing import (
    DIFFERENCES,
    FACTORS,
    NCCL_COLUMNS,
    QUOTIENT,
    SEARCHED_COLUMNS,
    why_missing,
    why_missing_of_run,
    why_no_interval,
)
from dlperf_study.report.tables.table import Cell, Heading
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome

#: What ratios are of.
RATES = ("throughput", "token_throughput")
#: The columns that a row gives as the digits of its denominator: that has its interval in its own row.
DENOMINATORS = ("baseline_throughput", "baseline_token_throughput", "reference_throughput")
#: The columns with the ends of each column's interval.
BOUNDS = {name: (f"{name}_low", f"{name}_high") for name in COLUMNS if f"{name}_low" in COLUMNS}
#: Those of the columns that are shown with their interval.
INTERVALS = {name: bounds for name, bounds in BOUNDS.items() if name not in DENOMINATORS}
#: What a column compares with; an interval may be missing because that has too few runs.
COMPARED_WITH: dict[str, Denominator] = {
    **dict.fromkeys(("speedup", "efficiency", "baseline_verdict", *FACTORS), "baseline"),
    **dict.fromkeys(("relative_throughput", "verdict", *DIFFERENCES, "difference_lies_in"), "reference"),
}
#: Columns of sentences, with names of files in them.
SENTENCES = ("reason",)
#: The column with the sentence that explains a number of a run in a footnote.
EXPLAINED_BY = {"steady_lines": "steady_window", "behaviour": "rate_levels"}
#: What a baseline or reference is relative to itself, whatever was measured.
BY_DEFINITION = {
    **dict.fromkeys(("speedup", "efficiency", *FACTORS, "relative_throughput"), "1"),
    **dict.fromkeys(DIFFERENCES, "0"),
}
#: Parts are shown in the unit of their whole, so that a reader can add them up.
PARTS_OF = dict.fromkeys(
    ("computation_seconds", "input_seconds", "exposed_seconds", "exchange_seconds", *DIFFERENCES), "step_seconds"
)
PARTS_OF["jitter_seconds"] = "step_seconds"
PARTS_OF["input_rate"] = "throughput"
PARTS_OF["exchange_bandwidth"] = "bus_bandwidth"
PARTS_OF |= dict.fromkeys(("step_p50_seconds", "step_p95_seconds", "step_p99_seconds"), "step_seconds")
PARTS_OF |= dict.fromkeys(("negotiation_seconds", "all_reduce_seconds"), "traced_step_seconds")
#: The value of each ratio and difference at which neither is faster.
DECISIONS = {"speedup": 1.0, "relative_throughput": 1.0, **dict.fromkeys(DIFFERENCES, 0.0)}
#: Subjects whose diagnostics a number shows, besides those about itself.
RELATED_SUBJECTS = dict.fromkeys(RATES, ("steadiness", "busy_cores"))
#: Columns of configurations that are shown without a unit and an interval.
UNITLESS = ("runs_completed", "difference_lies_in", *NCCL_COLUMNS, *SEARCHED_COLUMNS)
RATE_UNIT = COLUMNS["throughput"].unit


@dataclass(frozen=True)
class TableColumn:
    """One column of a table: its heading, and how a row of the dataset becomes a cell of it."""

    heading: Heading
    cell: Callable[[Any], Cell]


def laid_out(
    columns: Sequence[TableColumn], rows: Iterable[Any]
) -> tuple[tuple[Heading, ...], tuple[tuple[Cell, ...], ...]]:
    """Return the headings of the columns, and a row of cells for each of the rows."""
    headings = tuple(column.heading for column in columns)
    cells = []
    for row in rows:
        cells.append(tuple(column.cell(row) for column in columns))
    return headings, tuple(cells)


def defined(name: str) -> str:
    """Return the definition of a column as a note below a table."""
    return f"{COLUMNS[name].label}: {COLUMNS[name].definition}."


def factor_column(name: str) -> TableColumn:
    """Return a column of levels, as they are named in a paper."""

    def cell(row: Any) -> Cell:
        level = getattr(row, name)
        if name == "batch_per_device" and not level:
            return Cell.missing("the global batch can't be shared equally")
        return Cell.missing("not stated") if is_missing(level) else Cell(display_name(level))

    column = COLUMNS[name]
    return TableColumn(Heading(column.label, column.unit, numeric=column.is_number), cell)


def measured_column(dataset: Dataset, name: str) -> TableColumn:
    """Return a column of measured values in the unit that fits most of them; numbers lead to their runs."""
    column = _measured_column(dataset, name)
    return with_evidence(dataset, column) if column.heading.numeric else column


def with_evidence(dataset: Dataset, column: TableColumn) -> TableColumn:
    """Return a column whose numbers lead to the runs of the configuration of their row, if it has any."""
    with_runs = set(dataset.runs["identity"])

    def cell(row: Any) -> Cell:
        without_evidence = column.cell(row)
        if without_evidence.text == formatting.MISSING or row.identity not in with_runs:
            return without_evidence
        return replace(without_evidence, evidence=evidence_anchor(row.identity))

    return TableColumn(column.heading, cell)


def _measured_column(dataset: Dataset, name: str) -> TableColumn:
    if name in _SPECIAL_COLUMNS:
        return _SPECIAL_COLUMNS[name](dataset)
    unit = unit_of(name, dataset.configurations[PARTS_OF.get(name, name)])
    heading = Heading(unit.label, unit.symbol, numeric=True, interval=name in INTERVALS)
    return TableColumn(heading, lambda row: _measured_cell(dataset, row, name, unit))


def _measured_cell(dataset: Dataset, row: Any, name: str, unit: Unit) -> Cell:
    value = getattr(row, name)
    if is_missing(value):
        return Cell.missing(why_missing(dataset, row, name))
    diagnostics = list(_diagnostics(dataset, row, name))
    footnote = "; ".join(diagnostics)
    denominator = COMPARED_WITH.get(name)
    if denominator and getattr(row, f"is_{denominator}"):
        return Cell(BY_DEFINITION[name], footnote=footnote)
    printed, interval = formatting.with_interval(*bounded_value(row, name), DECISIONS.get(name), unit.size)
    if name in INTERVALS and not interval:
        footnote = "; ".join([why_no_interval(dataset, row, name, denominator), *diagnostics])
    return Cell(printed, interval if name in INTERVALS else "", footnote)


def _diagnostics(dataset: Dataset, row: Any, name: str) -> Iterator[str]:
    """Yield the diagnostics about one number, those of several runs together and with their numbers."""
    diagnostics = dataset.diagnostics_of(row.identity)
    if diagnostics.empty:
        return
    runs = dataset.runs_of(row.identity)
    completed = runs.loc[runs["outcome"] == Outcome.COMPLETED, "repetition"]
    counts = diagnostics["repetition"].isna() | diagnostics["repetition"].isin(completed)
    about_it = diagnostics[counts & diagnostics["subject"].isin((name, *RELATED_SUBJECTS.get(name, ())))]
    for _, similar in about_it.groupby(about_it["message"].map(without_numbers), sort=False):
        runs, message = _runs_label(similar), merged(similar["message"])
        yield f"{runs}: {message}" if runs else message
    if name in RATES:
        # Diagnostics about logs may be long, and are listed with all others: here only their runs.
        about_logs = diagnostics[diagnostics["subject"].map(is_file).astype(bool)]
        about_logs = about_logs[about_logs["repetition"].isin(completed)]
        if len(about_logs):
            yield f"diagnostics about the log of {_runs_label(about_logs)}"


def _runs_label(diagnostics: pd.DataFrame) -> str:
    """Return the runs that diagnostics are about: ``run 2``, ``runs 1 and 3``, and ``runs 1 to 4``."""
    runs = sorted(diagnostics["repetition"].dropna().astype(int).unique())
    if len(runs) > 2 and runs[-1] - runs[0] == len(runs) - 1:
        return f"runs {runs[0]} to {runs[-1]}"
    return f"run{'s' * (len(runs) > 1)} {listed(map(str, runs))}" if runs else ""


def run_column(runs: pd.DataFrame, name: str) -> TableColumn:
    """Return a column of a table of runs, in the unit that fits most of them; it has no interval."""
    column = COLUMNS[name]
    unit = unit_of(name, runs[name] if column.is_number else [])

    def cell(row: Any) -> Cell:
        value = getattr(row, name)
        if is_missing(value):
            return Cell.missing(why_missing_of_run(row, name))
        footnote = ""
        if name in EXPLAINED_BY and not is_missing(explanation := getattr(row, EXPLAINED_BY[name])):
            footnote = f"{COLUMNS[EXPLAINED_BY[name]].words}: {explanation}"
        if isinstance(value, float):
            is_rate = unit.symbol == RATE_UNIT
            shown = formatting.rate(value) if is_rate else formatting.plain(value / unit.size)
        else:
            shown = value if name in SENTENCES else display_name(value)
        return Cell(shown, footnote=footnote)

    return TableColumn(Heading(column.label, unit.symbol, numeric=column.is_number), cell)


def _unitless_column(name: str, dataset: Dataset) -> TableColumn:
    """Return a column of counts or texts, which have neither unit nor interval."""
    column = COLUMNS[name]

    def cell(row: Any) -> Cell:
        value, denominator = getattr(row, name), COMPARED_WITH.get(name)
        if denominator and getattr(row, f"is_{denominator}"):
            return Cell(denominator)
        if is_missing(value):
            return Cell.missing(why_missing(dataset, row, name))
        if name == "runs_completed":
            # Rounds that were added for precision are more runs than were planned.
            return Cell(f"{value} of {max(row.runs_planned, len(dataset.runs_of(row.identity)))}")
        return Cell(str(value))

    return TableColumn(Heading(column.label, numeric=column.is_number), cell)


def _quotient_column(dataset: Dataset) -> TableColumn:
    """Return the column of computation : communication, which is written as a ratio to ten."""

    def cell(row: Any) -> Cell:
        quotient, low, high = attrgetter(QUOTIENT, *INTERVALS[QUOTIENT])(row)
        if is_missing(quotient):
            return Cell.missing(why_missing(dataset, row, QUOTIENT))
        footnote = why_no_interval(dataset, row, QUOTIENT) if is_missing(low) else ""
        return Cell(*formatting.ratio(quotient, low, high), footnote)

    return TableColumn(Heading(COLUMNS[QUOTIENT].label, numeric=True, interval=True), cell)


def verdict_text(word: str, equal_within: float) -> str:
    """Return a verdict; of equality, within what."""
    return f"equal within {formatting.percent_at_most(equal_within)}" if word == EQUAL else word


def _verdict_column(dataset: Dataset, denominator: Denominator) -> TableColumn:
    """Return what may be said of a row and its baseline or reference."""
    name, ratio = VERDICTS[denominator], RATIOS[denominator]

    def cell(row: Any) -> Cell:
        if getattr(row, f"is_{denominator}"):
            return Cell(denominator)
        if is_missing(getattr(row, ratio)):
            return Cell.missing(why_missing(dataset, row, ratio))
        word, equal_within = attrgetter(name, f"{ratio}_equal_within")(row)
        if is_missing(word):
            return Cell.missing(why_no_interval(dataset, row, ratio, denominator))
        return Cell(verdict_text(word, equal_within))

    return TableColumn(Heading(COLUMNS[name].label), cell)


_SPECIAL_COLUMNS: dict[str, Callable[[Dataset], TableColumn]] = {
    **{name: partial(_unitless_column, name) for name in UNITLESS},
    QUOTIENT: _quotient_column,
    VERDICTS["baseline"]: lambda dataset: _verdict_column(dataset, "baseline"),
    VERDICTS["reference"]: lambda dataset: _verdict_column(dataset, "reference"),
}
