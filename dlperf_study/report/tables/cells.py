"""Cells of a table of configurations or runs: a value with its interval and diagnostics, or why it is missing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.analysis.comparison import verdict
from dlperf_study.analysis.statistics import Interval
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.configuration_table import RATIOS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import formatting
from dlperf_study.report.formatting import Unit, human, is_missing, listed, unit_of
from dlperf_study.report.tables.diagnostic_rows import is_file, merged, without_numbers
from dlperf_study.report.tables.missing import DIFFERENCES, why_missing, why_no_interval
from dlperf_study.report.tables.table import Cell, Heading
from dlperf_study.study.grid import Denominator
from dlperf_study.study.job import Outcome

#: The columns that hold the ends of a column's interval. A partner has its interval in its own row.
INTERVALS = {
    name: (f"{name}_low", f"{name}_high")
    for name in ("throughput", "speedup", "efficiency", "relative_throughput", *DIFFERENCES)
}
#: The partner to which a column compares; a missing interval may be the partner's fault.
COMPARED_WITH: dict[str, Denominator] = {
    **dict.fromkeys(("speedup", "efficiency"), "baseline"),
    **dict.fromkeys(("relative_throughput", "verdict", *DIFFERENCES, "difference_lies_in"), "reference"),
}
#: Columns that stand beside a throughput, and the ends of whose interval say how many digits they have.
DIGITS_OF = {
    "mean_of_rates": ("throughput_low", "throughput_high"),
    "baseline_throughput": ("baseline_low", "baseline_high"),
}
#: Columns that hold sentences, with names of files in them.
SENTENCES = ("reason",)
#: What is said of a number of a run in a footnote, since it is a sentence.
SAID_OF = {"steady_lines": "steady_window"}
#: What a partner is to itself, whatever was measured.
BY_DEFINITION = {
    **dict.fromkeys(("speedup", "efficiency", "relative_throughput"), "1"),
    **dict.fromkeys(DIFFERENCES, "0"),
}
#: Parts are shown in the unit of their whole, so that a reader can add them up.
PARTS_OF = dict.fromkeys(("computation_seconds", "exposed_seconds", "exchange_seconds", *DIFFERENCES), "step_seconds")
PARTS_OF |= dict.fromkeys(("negotiation_seconds", "all_reduce_seconds"), "traced_step_seconds")
#: The value of each ratio and difference at which neither is faster.
DECISIONS = {"speedup": 1.0, "relative_throughput": 1.0, **dict.fromkeys(DIFFERENCES, 0.0)}
#: What a reader must know of a number, besides diagnostics about itself.
ALSO_ABOUT = {"throughput": ("settled_at_step",)}
AGAINST_BASELINE = "Against baseline"
RATE_UNIT = COLUMNS["throughput"].unit


@dataclass(frozen=True)
class ColumnOfCells:
    """One column of a table: its heading, and how a row of the configurations becomes a cell of it."""

    heading: Heading
    cell: Callable[[Any], Cell]


def laid_out(
    columns: Sequence[ColumnOfCells], rows: Iterable[Any]
) -> tuple[tuple[Heading, ...], tuple[tuple[Cell, ...], ...]]:
    """Return the headings of some columns, and under them a row of cells for each of the rows."""
    headings = tuple(column.heading for column in columns)
    return headings, tuple(tuple(column.cell(row) for column in columns) for row in rows)


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


def _factor_cell(name: str, value: Any) -> Cell:
    if name == "batch_per_device" and not value:
        return Cell.missing("the global batch can't be shared equally")
    if is_missing(value):
        return Cell.missing("nobody stated it")
    return Cell(human(value))


def _run_cell(row: Any, name: str, unit: Unit) -> Cell:
    value = getattr(row, name)
    if is_missing(value):
        return Cell.missing(defined(name) if row.outcome == Outcome.COMPLETED else "the run does not count")
    said = getattr(row, SAID_OF[name]) if name in SAID_OF else ""
    note = f"{COLUMNS[SAID_OF[name]].label.lower()}: {said}" if not is_missing(said) else ""
    if not isinstance(value, float):
        return Cell(value if name in SENTENCES else human(value), note=note)
    return Cell(formatting.rate(value) if unit.symbol == RATE_UNIT else formatting.plain(value / unit.size), note=note)


def _value_cell(dataset: Dataset, row: Any, name: str, unit: Unit) -> Cell:
    value = getattr(row, name)
    if is_missing(value):
        return Cell.missing(why_missing(dataset, row, name))
    diagnostics = _diagnostics(dataset, row, name)
    role = COMPARED_WITH.get(name)
    if role and getattr(row, f"is_{role}"):
        return Cell(BY_DEFINITION[name], note="; ".join(diagnostics))
    if name not in INTERVALS:
        return Cell(_beside_interval(row, name, value / unit.size, unit), note="; ".join(diagnostics))
    low, high = (getattr(row, end) for end in INTERVALS[name])
    if is_missing(low) or is_missing(high):
        return Cell(formatting.plain(value / unit.size), note="; ".join([why_no_interval(row, role), *diagnostics]))
    ends = (low / unit.size, high / unit.size)
    text, interval = formatting.with_interval(value / unit.size, *ends, decision=DECISIONS.get(name))
    return Cell(text, interval, "; ".join(diagnostics))


def _beside_interval(row: Any, name: str, value: float, unit: Unit) -> str:
    """Write a value without an interval of its own as the throughput that it is compared with is written."""
    ends = [getattr(row, end) / unit.size for end in DIGITS_OF.get(name, ())]
    return (
        formatting.plain(value) if not ends or any(map(is_missing, ends)) else formatting.with_interval(value, *ends)[0]
    )


def _diagnostics(dataset: Dataset, row: Any, name: str) -> list[str]:
    """Return the diagnostics about one number, those of several runs together and with their numbers."""
    subjects = (name, *ALSO_ABOUT.get(name, ()))
    diagnostics = dataset.diagnostics
    about = diagnostics[(diagnostics["identity"] == row.identity) & diagnostics["subject"].isin(subjects)]
    alike = about.groupby(about["message"].map(without_numbers), sort=False)
    said = [": ".join(filter(None, (_of_runs(part), merged(part["message"])))) for _, part in alike]
    return [*said, *_uncertain_logs(dataset, row)] if name == "throughput" else said


def _uncertain_logs(dataset: Dataset, row: Any) -> Iterator[str]:
    """Yield which counted runs have logs with diagnostics; their texts may be long and are listed with all others."""
    runs, diagnostics = dataset.runs, dataset.diagnostics
    counted = runs.loc[(runs["identity"] == row.identity) & (runs["outcome"] == Outcome.COMPLETED), "repetition"]
    of_logs = (diagnostics["identity"] == row.identity) & diagnostics["subject"].map(is_file).astype(bool)
    about = diagnostics[of_logs & diagnostics["repetition"].isin(counted)]
    if len(about):
        yield f"diagnostics about the log of {_of_runs(about)}"


def _of_runs(diagnostics: pd.DataFrame) -> str:
    runs = [str(run) for run in diagnostics["repetition"].dropna().unique()]
    return f"run{'s' * (len(runs) > 1)} {listed(runs)}" if runs else ""


def _runs_column(_: Dataset) -> ColumnOfCells:
    heading = Heading(COLUMNS["runs_completed"].label, numeric=True)
    return ColumnOfCells(heading, lambda row: Cell(f"{row.runs_completed} of {row.runs_planned}"))


def _ratio_column(dataset: Dataset) -> ColumnOfCells:
    name = "computation_to_communication"

    def cell(row: Any) -> Cell:
        value = getattr(row, name)
        return Cell.missing(why_missing(dataset, row, name)) if is_missing(value) else Cell(formatting.ratio(value))

    return ColumnOfCells(Heading(COLUMNS[name].label, numeric=True), cell)


def _against_baseline(dataset: Dataset) -> ColumnOfCells:
    return ColumnOfCells(Heading(AGAINST_BASELINE), lambda row: _verdict_cell(dataset, row, "baseline"))


def _against_reference(dataset: Dataset) -> ColumnOfCells:
    heading = Heading(COLUMNS["verdict"].label)
    return ColumnOfCells(heading, lambda row: _verdict_cell(dataset, row, "reference"))


def _verdict_cell(dataset: Dataset, row: Any, role: Denominator) -> Cell:
    """Return whether a row is faster than its partner, from the interval of the ratio to it."""
    ratio = RATIOS[role]
    if getattr(row, f"is_{role}"):
        return Cell(role)
    if is_missing(getattr(row, ratio)):
        return Cell.missing(why_missing(dataset, row, ratio))
    low, high = (getattr(row, end) for end in INTERVALS[ratio])
    said = None if is_missing(low) else verdict(Interval(low, high, row.interval_coverage))
    return Cell(said) if said else Cell.missing(why_no_interval(row, role))


def _lies_in_column(dataset: Dataset) -> ColumnOfCells:
    name = "difference_lies_in"

    def cell(row: Any) -> Cell:
        value = getattr(row, name)
        if row.is_reference:
            return Cell("reference")
        return Cell.missing(why_missing(dataset, row, name)) if is_missing(value) else Cell(value)

    return ColumnOfCells(Heading(COLUMNS[name].label), cell)


_OWN_WAYS: dict[str, Callable[[Dataset], ColumnOfCells]] = {
    "runs_completed": _runs_column,
    "computation_to_communication": _ratio_column,
    AGAINST_BASELINE: _against_baseline,
    "verdict": _against_reference,
    "difference_lies_in": _lies_in_column,
}
