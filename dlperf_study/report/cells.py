"""Cells of a table of configurations or runs: a value with its interval and doubts, or why it is missing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.columns import COLUMNS
from dlperf_study.report import numbers
from dlperf_study.report.missing import why_missing, why_no_interval
from dlperf_study.report.names import human
from dlperf_study.report.numbers import is_missing
from dlperf_study.report.table import Cell, Heading
from dlperf_study.report.units import Unit, unit_of
from dlperf_study.study.outcome import Outcome

#: The columns that hold the ends of a column's interval. A baseline has its interval in its own row.
INTERVALS = {
    "throughput": ("throughput_low", "throughput_high"),
    "speedup": ("speedup_low", "speedup_high"),
    "efficiency": ("efficiency_low", "efficiency_high"),
}
#: What is one for a baseline, whatever was measured.
BY_DEFINITION = ("speedup", "efficiency")
#: Parts are shown in the unit of their whole, so that a reader can add them up.
PARTS_OF = dict.fromkeys(("computation_seconds", "exposed_seconds", "exchange_seconds"), "step_seconds")
AGAINST_BASELINE = "Against baseline"
UNDECIDED = "not distinguishable"


@dataclass(frozen=True)
class ColumnOfCells:
    """One column of a table: its heading, and how a row of the configurations becomes a cell of it."""

    heading: Heading
    cell: Callable[[Any], Cell]


def factor_column(name: str) -> ColumnOfCells:
    """Return a column of levels, as they are named in a paper."""
    known = COLUMNS[name]
    heading = Heading(known.label, known.unit, numeric=known.is_number)
    return ColumnOfCells(heading, lambda row: _factor_cell(name, getattr(row, name)))


def measured_column(dataset: Dataset, name: str) -> ColumnOfCells:
    """Return a column of measured values in the unit that fits most of them."""
    if name in _OWN_WAYS:
        return _OWN_WAYS[name](dataset)
    unit = unit_of(name, dataset.configurations[PARTS_OF.get(name, name)])
    heading = Heading(unit.label, unit.symbol, numeric=True, interval=name in INTERVALS)
    return ColumnOfCells(heading, lambda row: _value_cell(dataset, row, name, unit))


def run_column(runs: pd.DataFrame, name: str) -> ColumnOfCells:
    """Return a column of a table of runs, in the unit that fits most of them; it has no interval."""
    known, unit = COLUMNS[name], unit_of(name, runs[name] if COLUMNS[name].is_number else [])
    heading = Heading(known.label, unit.symbol, numeric=known.is_number)
    return ColumnOfCells(heading, lambda row: _run_cell(row, name, unit))


def defined(name: str) -> str:
    """Return the definition of a column as a remark below a table."""
    return f"{COLUMNS[name].label}: {COLUMNS[name].definition}."


def verdict(row: Any) -> str:
    """Say how a configuration compares with its baseline, or that its interval can't tell."""
    if row.speedup_low <= 1 <= row.speedup_high:
        return UNDECIDED
    return "faster" if row.speedup > 1 else "slower"


def _factor_cell(name: str, value: Any) -> Cell:
    if name == "batch_per_device" and not value:
        return Cell.missing("the global batch can't be shared equally")
    return Cell(human(value))


def _run_cell(row: Any, name: str, unit: Unit) -> Cell:
    value = getattr(row, name)
    if is_missing(value):
        return Cell.missing(defined(name) if row.outcome == Outcome.COMPLETED else "the run did not complete")
    return Cell(numbers.plain(value / unit.size) if isinstance(value, float) else human(value))


def _value_cell(dataset: Dataset, row: Any, name: str, unit: Unit) -> Cell:
    value = getattr(row, name)
    if is_missing(value):
        return Cell.missing(why_missing(dataset, row, name))
    doubts = _doubts(dataset, row, name)
    if row.is_baseline and name in BY_DEFINITION:
        return Cell("1", note="; ".join(doubts))
    if name not in INTERVALS:
        return Cell(numbers.plain(value / unit.size), note="; ".join(doubts))
    low, high = (getattr(row, end) for end in INTERVALS[name])
    if is_missing(low) or is_missing(high):
        return Cell(numbers.plain(value / unit.size), note="; ".join([why_no_interval(row), *doubts]))
    text, interval = numbers.with_interval(value / unit.size, low / unit.size, high / unit.size)
    return Cell(text, interval, "; ".join(doubts))


def _doubts(dataset: Dataset, row: Any, name: str) -> list[str]:
    """Return the complaints about one number."""
    about = dataset.complaints[
        (dataset.complaints["identity"] == row.identity) & (dataset.complaints["subject"] == name)
    ]
    return list(dict.fromkeys(about["message"]))


def _runs_column(_: Dataset) -> ColumnOfCells:
    heading = Heading(COLUMNS["runs_completed"].label, numeric=True)
    return ColumnOfCells(heading, lambda row: Cell(f"{row.runs_completed} of {row.runs_planned}"))


def _ratio_column(dataset: Dataset) -> ColumnOfCells:
    name = "computation_to_communication"

    def cell(row: Any) -> Cell:
        value = getattr(row, name)
        return Cell.missing(why_missing(dataset, row, name)) if is_missing(value) else Cell(numbers.ratio(value))

    return ColumnOfCells(Heading(COLUMNS[name].label, numeric=True), cell)


def _verdict_column(dataset: Dataset) -> ColumnOfCells:
    def cell(row: Any) -> Cell:
        if row.is_baseline:
            return Cell("baseline")
        if is_missing(row.speedup):
            return Cell.missing(why_missing(dataset, row, "speedup"))
        return Cell.missing(why_no_interval(row)) if is_missing(row.speedup_low) else Cell(verdict(row))

    return ColumnOfCells(Heading(AGAINST_BASELINE), cell)


_OWN_WAYS: dict[str, Callable[[Dataset], ColumnOfCells]] = {
    "runs_completed": _runs_column,
    "computation_to_communication": _ratio_column,
    AGAINST_BASELINE: _verdict_column,
}
