"""A table of results from a file of a user; all errors of the file are reported in one message."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dlperf_study.audit.audit import uncompared_tables
from dlperf_study.audit.reading.column_readings import ColumnReading
from dlperf_study.audit.reading.files import TableFormat, read_grids
from dlperf_study.audit.reading.grid import Grid
from dlperf_study.audit.reading.numbers import FACTORS, NO_NUMBERS, is_no_number, without_commas
from dlperf_study.audit.reading.rows import LINE, NUMBER_CONDITIONS
from dlperf_study.audit.reading.table_errors import TableErrors, error_prefix
from dlperf_study.audit.reading.wide_reader import WideReader
from dlperf_study.audit.result_cell import RELATIVE, SPEEDUP
from dlperf_study.audit.result_frames import METRIC, METRIC_COLUMNS, VALUE, first_repeated, results_of_frame
from dlperf_study.audit.results import Results
from dlperf_study.columns import COLUMNS, Dtype
from dlperf_study.errors import PublishedError, TableError
from dlperf_study.published.source import METRICS
from dlperf_study.published.source_lines import NO_NUMBER, resolution_of, value_of
from dlperf_study.study.strict_yaml import display_path
from dlperf_study.wording import unknown_name

#: The sizes of numbers of results: quotients and products of such numbers are numbers too.
SMALLEST, LARGEST = 1e-30, 1e30
#: How many characters of a field a message shows.
LONGEST_FIELD = 40
#: Counts of which there is at least one.
_AT_LEAST_ONE = ("world_size", "nodes", "devices_per_node")
_RESOLUTION = "resolution"
#: Columns of numbers that the registry of columns does not define.
_NUMBER_COLUMNS = ("low", "high", _RESOLUTION, *NUMBER_CONDITIONS)
_METRICS = tuple(dict.fromkeys((*METRICS, *METRIC_COLUMNS)))
#: Ratios of two rates, and the signs that may follow them.
_RATIOS, _TIMES_SIGNS = (SPEEDUP, RELATIVE), "x×"
#: A number and its unit.
_WITH_UNIT = re.compile(rf"(?P<digits>\S+) ?(?P<unit>{'|'.join(map(re.escape, FACTORS))})")


@dataclass(frozen=True)
class TablesOfFile:
    """What was read of a file: its results, how each column was read, and the names of tables without any result."""

    results: Results
    columns: tuple[ColumnReading, ...]
    tables_without_results: tuple[str, ...] = ()

    @property
    def uncompared(self) -> list[str]:
        """The tables in which no check compares two numbers."""
        return uncompared_tables(self.results)


def read_tables(path: Path, table_format: TableFormat | None = None) -> TablesOfFile:
    """Read the tables of a file: long, one row per number with its ``metric``, or wide, a column for each metric.

    Numbers count as printed: the last digit of each says how it was rounded.

    Raises:
        TableError: the file is no table, names no metric, or has fields that are no numbers: all of them are named.

    """
    errors, table_format = TableErrors(), table_format or TableFormat()
    with error_prefix(f"{display_path(path)}: "):
        grids = read_grids(path, table_format, errors)
        for grid in grids:
            names = list(filter(None, grid.header))
            if repeated := first_repeated(names):
                raise TableError(f"column {repeated} appears twice; the columns are {', '.join(names)}")
        if not any(grid.rows for grid in grids):
            errors.raise_all()
            raise TableError("there is no row below the header")
        reader = WideReader(path.name, table_format.decimal, errors)
        is_long = len(grids) == 1 and METRIC in grids[0].header
        rows = _long_rows(grids[0]) if is_long else reader.rows(grids)
        typed_rows = [_typed_row(row, errors) for row in rows]
        errors.raise_all()
        results = results_of_frame(pd.DataFrame(typed_rows))
        return TablesOfFile(results, tuple(reader.columns), tuple(reader.tables_without_results))


def _long_rows(grid: Grid) -> list[Mapping[Any, Any]]:
    """Return the rows of a table that has one number in each."""
    rows: list[Mapping[Any, Any]] = []
    for row in grid.rows:
        named = {name: field or None for name, field in zip(grid.header, row.fields, strict=True)}
        rows.append({**named, LINE: row.line})
    return rows


def _typed_row(row: Mapping[Any, Any], errors: TableErrors) -> dict[str, Any]:
    """Return a row with numbers in the columns of numbers; without a value if that has an error."""
    fields = {str(name): str(field) for name, field in row.items() if not pd.isna(field)}
    line = f"line {fields.pop(LINE)}"
    conditions = []
    for name, field in fields.items():
        # A word for no number may be a level of a column without numbers: no compression is "none".
        is_missing = is_no_number(field) if _is_number_column(name) else field == NO_NUMBER
        if name != VALUE and not is_missing:
            conditions.append(name)
    typed = errors.parse_each(conditions, lambda name: (name, _condition(name, line, fields[name])))
    typed_row = dict(typed)
    for value_columns in errors.parse_each([fields], lambda fields: _value_columns(fields, line)):
        typed_row |= value_columns
    return _with_world_size(typed_row)


def _with_world_size(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its number of devices, also where a table prints only those of a node, and the nodes."""
    if "world_size" in row or not {"nodes", "devices_per_node"} <= row.keys():
        return row
    inferred = ", ".join(filter(None, (row.get("inferred"), "world_size")))
    return row | {"world_size": row["nodes"] * row["devices_per_node"], "inferred": inferred}


def _is_number_column(name: str) -> bool:
    return name in _NUMBER_COLUMNS or (name in COLUMNS and COLUMNS[name].is_number)


def _condition(name: str, line: str, field: str) -> Any:
    if not _is_number_column(name):
        return field
    with error_prefix(f"{line}: {name} is "):
        value = finite(field)
        if name in COLUMNS and COLUMNS[name].dtype is not Dtype.FLOAT and not value.is_integer():
            raise TableError(f"{field!r}, which is not an integer")
        if name in _AT_LEAST_ONE and value < 1:
            raise TableError(f"{field!r}, which must be at least 1")
        return value


def _value_columns(fields: Mapping[str, str], line: str) -> dict[str, Any]:
    """Return the number of a row and one unit of its last digit; empty where there is no number."""
    metric = fields.get(METRIC, "")
    if metric not in _METRICS:
        raise TableError(f"{line}: {unknown_name('metric is', metric, 'metrics', _METRICS)}")
    field = fields.get(VALUE, fields.get("printed", NO_NUMBER))
    if is_no_number(field):
        return {}
    with error_prefix(f"{line}: {fields.get('column', VALUE)} is "):
        if metric in _RATIOS:
            field = field.rstrip(_TIMES_SIGNS).rstrip()
        if _RESOLUTION in fields:
            return {VALUE: finite(field)}
        match = _WITH_UNIT.fullmatch(field)
        digits, factor = (match["digits"], FACTORS[match["unit"]]) if match else (field, 1)
        digits = without_commas(digits)
        try:
            value, resolution = value_of(digits) / factor, resolution_of(digits) / factor
        except PublishedError:
            return {VALUE: finite(field), "printed": field}
        return {VALUE: _checked_finite(value, field), _RESOLUTION: resolution, "printed": field}


def finite(field: str) -> float:
    """Return a number; raises TableError if the field is no number, or one that no result is."""
    try:
        value = float(without_commas(field))
    except ValueError:
        raise TableError(f"{field!r}, which is not a number; where there is none, write {NO_NUMBERS[0]}") from None
    return _checked_finite(value, field)


def _checked_finite(value: float, field: str) -> float:
    if not math.isfinite(value):
        shown = field if len(field) <= LONGEST_FIELD else f"{field[:LONGEST_FIELD]}…"
        raise TableError(f"{shown!r}, which is not finite; where there is no number, write {NO_NUMBERS[0]}")
    if value and not SMALLEST <= abs(value) <= LARGEST:
        raise TableError(f"{field!r}, which no result is: its size must be 0, or from {SMALLEST:g} to {LARGEST:g}")
    return value
