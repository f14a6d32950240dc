"""Tables of results, long or wide; one message reports all errors.

The columns of a wide table are metrics and conditions; its rows become rows with one number each.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from dlperf_study.audit import quantities, result_frames
from dlperf_study.audit.published.source import METRICS, NO_NUMBER, parse_resolution, parse_value
from dlperf_study.audit.reading import numbers
from dlperf_study.audit.reading.column_names import Use, interpret_name
from dlperf_study.audit.reading.column_readings import ColumnReading, infer_time_units, is_canonical, read_columns
from dlperf_study.audit.reading.files import COLUMN_NAME, Grid, GridRow, TableFormat, read_grids
from dlperf_study.audit.reading.numbers import TableErrors
from dlperf_study.audit.reading.rows import (
    LINE,
    NUMBER_CONDITIONS,
    RowReader,
    find_runs_metric,
    name_baselines,
    read_heading,
    run_cells,
)
from dlperf_study.audit.results import Results
from dlperf_study.core.errors import PublishedError, TableError
from dlperf_study.core.reading_limits import ReadingLimits
from dlperf_study.core.wording import list_first, path_text, unknown_name
from dlperf_study.metrics.columns import COLUMNS, Dtype
from dlperf_study.study.strict_yaml import display_path

#: The sizes of numbers of results: quotients and products of such numbers are numbers too.
SMALLEST, LARGEST = 1e-30, 1e30
LONGEST_FIELD, _SHOWN_COLUMNS = 40, 30
#: A byte of a table costs as much as so many of a log: its fields become objects of Python.
_COST = 20
_AT_LEAST_ONE = ("world_size", "nodes", "devices_per_node")
_RESOLUTION = "resolution"
#: Columns of numbers that the registry of columns does not define.
_NUMBER_COLUMNS = {"low", "high", _RESOLUTION, *NUMBER_CONDITIONS}
_METRICS = tuple(dict.fromkeys((*METRICS, *result_frames.METRIC_COLUMNS)))
#: Ratios of two throughputs, and the signs that may follow them.
_RATIOS, _TIMES_SIGNS = (quantities.SPEEDUP, quantities.RELATIVE), "x×"
_WITH_UNIT = re.compile(rf"(?P<digits>\S+) ?(?P<unit>{'|'.join(map(re.escape, numbers.FACTORS))})")
#: A table is read across if so many of its rows are named as columns of numbers are.
_ENOUGH_NAMES = 2
#: Columns that say which row a number is in, and nothing about how it was measured.
_OF_TABLE = ("configuration_id", "table")


@dataclass(frozen=True)
class TablesOfFile:
    """Results of a file, its columns, and what is left out."""

    results: Results
    columns: tuple[ColumnReading, ...]
    tables_without_results: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def read_tables(path: Path, table_format: TableFormat | None = None) -> TablesOfFile:
    """Read the tables of a file.

    A long table has one row per number with its ``metric``; a wide table has a column for each metric. The last digit
    of each number gives its rounding. Unreadable cells are left out. Raises TableError, with all reasons, if the file
    is no table, names no metric, or has no readable number.
    """
    errors, table_format = TableErrors(), table_format or TableFormat()
    with numbers.error_prefix(f"{display_path(path)}: "), ReadingLimits(path.stat().st_size * _COST, TableError):
        grids = read_grids(path, table_format, errors)
        return _parse_grids(grids, path_text(path.name), table_format, errors)


def read_frame(frame: pd.DataFrame, source: str = "frame") -> TablesOfFile:
    """Read a frame as ``read_tables`` reads a file; a named index is a column."""
    named = frame
    if any(name is not None for name in frame.index.names):
        named = frame.reset_index()
    header = tuple(map(str, named.columns))
    rows = []
    for line, fields in enumerate(named.itertuples(index=False, name=None), 2):
        rows.append(GridRow(line, tuple("" if pd.isna(field) else str(field).strip() for field in fields)))
    with numbers.error_prefix(f"{source}: "):
        return _parse_grids([Grid(1, "", header, tuple(rows))], source, TableFormat(), TableErrors())


def _parse_grids(grids: list[Grid], source: str, table_format: TableFormat, errors: TableErrors) -> TablesOfFile:
    grids = list(errors.parse_each(grids, _require_names))
    if not any(grid.rows for grid in grids):
        errors.raise_all()
        raise TableError("has no row below the header")
    reader = WideReader(source, table_format.decimal, errors)
    rows: list[Mapping[Any, Any]] = []
    if len(grids) == 1 and {result_frames.METRIC, result_frames.VALUE} <= {*grids[0].header}:
        for row in grids[0].rows:
            named = {}
            for name, field in zip(grids[0].header, row.fields, strict=True):
                named[name] = field or None
            rows.append({**named, LINE: row.line})
    else:
        rows = reader.rows(grids)
    typed_rows = list(errors.parse_each(rows, lambda row: _typed_row(row, errors)))
    if not any(result_frames.VALUE in row for row in typed_rows):
        errors.raise_all()
    results = result_frames.read_results_frame(pd.DataFrame(typed_rows))
    return TablesOfFile(results, tuple(reader.columns), tuple(reader.tables_without_results), errors.messages)


def _require_names(grid: Grid) -> Grid:
    names = list(filter(None, grid.header))
    if repeated := result_frames.first_repeated(names):
        raise TableError(f"column {repeated} appears twice; the columns are {list_first(names, _SHOWN_COLUMNS)}")
    return grid


def _typed_row(row: Mapping[Any, Any], errors: TableErrors) -> dict[str, Any]:
    """Return a row with its numbers parsed; without an invalid value."""
    fields = {str(name): str(field) for name, field in row.items() if not _is_missing(field)}
    line = f"line {fields.pop(LINE)}"
    conditions = []
    for name, field in fields.items():
        # A word for no number may be a value of a column without numbers: no compression is "none".
        is_missing = numbers.is_no_number(field) if _is_number_column(name) else field == NO_NUMBER
        if name != result_frames.VALUE and not is_missing:
            conditions.append(name)
    typed_row = {name: _condition(name, line, fields[name]) for name in conditions}
    for value_columns in errors.parse_each([fields], lambda fields: _value_columns(fields, line)):
        typed_row |= value_columns
    return typed_row


def _is_missing(field: object) -> bool:
    # A test of pandas for each field of a long table takes seconds.
    return field is None or (not isinstance(field, str) and pd.isna(field))


@cache
def _is_number_column(name: str) -> bool:
    return name in _NUMBER_COLUMNS or (name in COLUMNS and COLUMNS[name].is_number)


def _condition(name: str, line: str, field: str) -> Any:
    if not _is_number_column(name):
        return field
    with numbers.error_prefix(f"{line}: {name} is "):
        value = finite(field)
        if name in COLUMNS and COLUMNS[name].dtype is not Dtype.FLOAT and not value.is_integer():
            raise TableError(f"{field!r}, which is not an integer")
        if name in _AT_LEAST_ONE and value < 1:
            raise TableError(f"{field!r}, which must be at least 1")
        return value


def _value_columns(fields: Mapping[str, str], line: str) -> dict[str, Any]:
    """Return the value of a row and its resolution, if any."""
    metric = fields.get(result_frames.METRIC, "")
    if metric not in _METRICS:
        raise TableError(f"{line}: {unknown_name('metric is', metric, 'metrics', _METRICS)}")
    field = fields.get(result_frames.VALUE, fields.get("printed", NO_NUMBER))
    if numbers.is_no_number(field):
        return {}
    with numbers.error_prefix(f"{line}: {fields.get('column', result_frames.VALUE)} is "):
        if metric in _RATIOS:
            field = field.rstrip(_TIMES_SIGNS).rstrip()
        if _RESOLUTION in fields:
            return {result_frames.VALUE: finite(field)}
        digits, factor = field, 1.0
        if match := _WITH_UNIT.fullmatch(field):
            digits, factor = match["digits"], numbers.FACTORS[match["unit"]]
        digits = numbers.drop_thousands_commas(digits)
        try:
            value, resolution = parse_value(digits) / factor, parse_resolution(digits) / factor
        except PublishedError:
            return {result_frames.VALUE: finite(field), "printed": field}
        return {result_frames.VALUE: _checked_finite(value, field), _RESOLUTION: resolution, "printed": field}


def finite(field: str) -> float:
    """Return a number; raises TableError if it is none or out of range."""
    try:
        value = float(numbers.drop_thousands_commas(field))
    except ValueError:
        raise TableError(f"{field!r}, which is not a number; write {NO_NUMBER} for a missing number") from None
    return _checked_finite(value, field)


def _checked_finite(value: float, field: str) -> float:
    if not math.isfinite(value):
        shown = field if len(field) <= LONGEST_FIELD else f"{field[:LONGEST_FIELD]}…"
        raise TableError(f"{shown!r}, which is not finite; write {NO_NUMBER} for a missing number")
    if value and not SMALLEST <= abs(value) <= LARGEST:
        raise TableError(
            f"{field!r}, which is out of range; its magnitude must be 0, or from {SMALLEST:g} to {LARGEST:g}"
        )
    return value


class WideReader:
    """Reads wide tables; collects column readings and tables without results."""

    def __init__(self, source: str, declared_decimal: str, errors: TableErrors) -> None:
        self._source, self._declared_decimal, self._errors = source, declared_decimal, errors
        #: The settings of each column of tables that are read across, by its name.
        self._settings: dict[str, dict[str, str]] = {}
        self.columns: list[ColumnReading] = []
        self.tables_without_results: list[str] = []

    def rows(self, grids: Sequence[Grid]) -> list[Mapping[Any, Any]]:
        """Return all numbers; raises TableError without a column of results."""
        rows: list[Mapping[Any, Any]] = []
        # The tables of a page are written in one style.
        decimal = numbers.decimal_sign(itertools.chain.from_iterable(map(_fields, grids)), self._declared_decimal)
        for grid in grids:
            rows += self._read_table_rows(grid, decimal, len(grids) > 1)
        if not any(reading.is_metric for reading in self.columns):
            self._errors.raise_all()
            raise TableError(_no_metric_message(grids, self.columns))
        return rows

    def _read_table_rows(self, table: Grid, decimal: str, is_one_of_several: bool) -> list[Mapping[Any, Any]]:
        facts = read_heading(table.heading)
        grid, readings = _upright(table, "world_size" in facts, self._declared_decimal)
        readings = infer_time_units(grid, readings, decimal)
        self.columns += readings
        reader = RowReader(grid, readings, facts, decimal)
        wide, long = self._parsed_rows(grid, readings, reader, decimal, is_one_of_several)
        if any(reading.is_metric for reading in readings):
            return [*result_frames.long_frame(pd.DataFrame(wide), self._source).to_dict("records"), *long]
        self.tables_without_results.append(grid.name)
        if grid.header[0] == COLUMN_NAME:
            # The conditions of a table that is read across count for the tables after it.
            for grid_row, row in zip(grid.rows, wide, strict=False):
                conditions = {}
                for name, value in row.items():
                    if name in COLUMNS and name not in _OF_TABLE:
                        conditions[name] = value
                self._settings.setdefault(grid_row.fields[0], {}).update(conditions)
        return []

    def _parsed_rows(
        self, grid: Grid, readings: list[ColumnReading], reader: RowReader, decimal: str, is_one_of_several: bool
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the rows of a table, and a row per run."""
        metric = find_runs_metric(readings, grid.heading)
        wide: list[dict[str, Any]] = []
        long: list[dict[str, Any]] = []

        def read_row(numbered: tuple[int, GridRow]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
            position, row = numbered
            label, named, settings = f"row {position}", dict[str, str](), dict[str, str]()
            if is_one_of_several:
                label = f"table {grid.number}/row {position}"
                named = {"table": grid.name, "heading of the table": grid.name}
            if grid.header[0] == COLUMN_NAME:
                settings = self._settings.get(row.fields[0], {})
            rows = [settings | fields for fields in reader.rows(row, label)]
            if not rows:
                return [], []
            conditions = {}
            for name, value in rows[0].items():
                if name not in result_frames.METRIC_COLUMNS:
                    conditions[name] = value
            runs = list(run_cells(row, readings, conditions, metric, self._source, decimal))
            return [fields | named for fields in rows], runs

        for rows, runs in self._errors.parse_each(enumerate(grid.rows, 1), read_row):
            wide += rows
            long += runs
        return name_baselines(wide), long


def _fields(grid: Grid) -> Iterator[str]:
    return itertools.chain.from_iterable(row.fields for row in grid.rows)


def _upright(grid: Grid, has_devices: bool, decimal: str) -> tuple[Grid, list[ColumnReading]]:
    """Return a table with metrics as columns; some print metrics as rows."""
    readings = read_columns(grid, has_devices, decimal)
    is_upright = any(is_canonical(reading.header) or _is_named_as_metric(reading) for reading in readings)
    is_upright = is_upright or any(reading.is_metric for reading in readings)
    if is_upright or len(grid.header) < 2 or len(set(grid.column(0))) < len(grid.rows):
        return grid, readings
    corner = interpret_name(grid.header[0], grid.header[1:], "")
    first_column = COLUMN_NAME
    if corner.use is Use.CONDITION:
        first_column = grid.header[0]
    across = grid.transposed(first_column)
    across_readings = read_columns(across, has_devices, decimal)
    understood = 0
    for reading in across_readings:
        if reading.meaning.use is Use.CONDITION:
            is_understood = reading.meaning.name != reading.header
        else:
            is_understood = reading.is_metric or bool(reading.meaning.reason)
        understood += is_understood and reading.numbers > 0
    if understood >= _ENOUGH_NAMES:
        return across, across_readings
    return grid, readings


def _is_named_as_metric(reading: ColumnReading) -> bool:
    return interpret_name(reading.header, (), "").use is Use.METRIC


def _no_metric_message(grids: Sequence[Grid], columns: Sequence[ColumnReading]) -> str:
    reasons: dict[str, str] = {}
    for column in columns:
        if _is_named_as_metric(column) or column.meaning.name in METRICS:
            reason = column.meaning.reason or "no check uses it"
            reasons[column.header] = reason if column.header in reason else f"{column.header}: {reason}"
    if reasons:
        return list_first(list(reasons.values()), numbers.MOST_ERRORS, "; ")
    header = dict.fromkeys(itertools.chain.from_iterable(grid.header for grid in grids))
    return (
        f"no column is a metric; the columns are {list_first([*header], _SHOWN_COLUMNS)}; "
        f"name a column after a metric, such as {', '.join(result_frames.METRIC_COLUMNS[:3])} or Images/sec"
    )
