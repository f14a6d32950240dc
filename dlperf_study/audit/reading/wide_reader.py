"""The tables of a file whose columns are metrics and conditions, as rows with one number each."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dlperf_study.audit.reading.column_names import Use, meaning_of
from dlperf_study.audit.reading.column_readings import ColumnReading, is_canonical, read_columns
from dlperf_study.audit.reading.context import facts_of_heading
from dlperf_study.audit.reading.grid import COLUMN_NAME, Grid, GridRow
from dlperf_study.audit.reading.numbers import decimal_sign
from dlperf_study.audit.reading.rows import RowReader, with_baselines
from dlperf_study.audit.reading.runs import metric_of_runs, run_cells
from dlperf_study.audit.reading.table_errors import TableErrors
from dlperf_study.audit.reading.time_units import with_time_unit
from dlperf_study.audit.result_frames import METRIC_COLUMNS, long_frame
from dlperf_study.columns import COLUMNS
from dlperf_study.errors import TableError

#: A table is read across if so many of its rows are named as columns of numbers are.
_ENOUGH_NAMES = 2
#: Columns that say which row a number is in, and nothing about how it was measured.
_OF_TABLE = ("identity", "table")


class WideReader:
    """Reads the tables of a file; keeps how each column was read, and which tables have no result."""

    def __init__(self, source: str, declared_decimal: str, errors: TableErrors) -> None:
        """Begin with no table; ``source`` is the name of the file."""
        self._source, self._declared_decimal, self._errors = source, declared_decimal, errors
        #: The settings of each column of tables that are read across, by its name.
        self._settings: dict[str, dict[str, str]] = {}
        self.columns: list[ColumnReading] = []
        self.tables_without_results: list[str] = []

    def rows(self, grids: Sequence[Grid]) -> list[Mapping[Any, Any]]:
        """Return all numbers of all tables; raises TableError if no table has a column of results."""
        rows: list[Mapping[Any, Any]] = []
        for grid in grids:
            rows += self._rows_of_table(grid, len(grids) > 1)
        if not any(reading.is_metric for reading in self.columns):
            raise TableError(_without_metrics(grids))
        return rows

    def _rows_of_table(self, table: Grid, is_one_of_several: bool) -> list[Mapping[Any, Any]]:
        facts = facts_of_heading(table.heading)
        decimal = decimal_sign((field for _, fields in table.columns() for field in fields), self._declared_decimal)
        grid, readings = _upright(table, "world_size" in facts, self._declared_decimal)
        readings = with_time_unit(grid, readings, decimal)
        self.columns += readings
        reader = RowReader(grid, readings, facts, decimal)
        wide, long = self._parsed_rows(grid, readings, reader, decimal, is_one_of_several)
        if any(reading.is_metric for reading in readings):
            return [*long_frame(pd.DataFrame(wide), self._source).to_dict("records"), *long]
        self.tables_without_results.append(grid.name)
        self._keep_settings(grid, wide)
        return []

    def _parsed_rows(
        self, grid: Grid, readings: list[ColumnReading], reader: RowReader, decimal: str, is_one_of_several: bool
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the rows of a table as they are, and a row for each number of a run."""
        metric = metric_of_runs(readings, grid.heading)
        wide: list[dict[str, Any]] = []
        long: list[dict[str, Any]] = []

        def read_row(numbered: tuple[int, GridRow]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
            position, row = numbered
            label = f"table {grid.number}/row {position}" if is_one_of_several else f"row {position}"
            rows = [self._settings_of(grid, row) | fields for fields in reader.rows(row, label)]
            if not rows:
                return [], []
            conditions = {name: value for name, value in rows[0].items() if name not in METRIC_COLUMNS}
            return rows, list(run_cells(row, readings, conditions, metric, self._source, decimal))

        for rows, runs in self._errors.parse_each(enumerate(grid.rows, 1), read_row):
            wide += [row | {"table": grid.name} for row in rows] if is_one_of_several else rows
            long += runs
        return with_baselines(wide), long

    def _settings_of(self, grid: Grid, row: GridRow) -> dict[str, str]:
        """Return what earlier tables that are read across say about the column of this name."""
        return self._settings.get(row.fields[0], {}) if grid.header[0] == COLUMN_NAME else {}

    def _keep_settings(self, grid: Grid, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep the conditions of a table that is read across, without results, for the tables after it."""
        if grid.header[0] != COLUMN_NAME:
            return
        for grid_row, row in zip(grid.rows, rows, strict=False):
            conditions = {name: value for name, value in row.items() if name in COLUMNS and name not in _OF_TABLE}
            self._settings.setdefault(grid_row.fields[0], {}).update(conditions)


def _upright(grid: Grid, has_devices: bool, decimal: str) -> tuple[Grid, list[ColumnReading]]:
    """Return a table with its metrics as columns, and how these are read: some print metrics as rows."""
    readings = read_columns(grid, has_devices, decimal)
    is_upright = any(reading.is_metric or is_canonical(reading.header) for reading in readings)
    if is_upright or len(grid.header) < 2 or len(set(grid.column(0))) < len(grid.rows):
        return grid, readings
    corner = meaning_of(grid.header[0], grid.header[1:], "")
    across = grid.transposed(grid.header[0] if corner.use is Use.CONDITION else COLUMN_NAME)
    across_readings = read_columns(across, has_devices, decimal)
    understood = [reading for reading in across_readings if reading.numbers and _is_understood(reading)]
    return (across, across_readings) if len(understood) >= _ENOUGH_NAMES else (grid, readings)


def _is_understood(reading: ColumnReading) -> bool:
    """Return whether the name of a column says what it is, and is no name of its own."""
    if reading.meaning.use is Use.CONDITION:
        return reading.meaning.name != reading.header
    return reading.is_metric or bool(reading.meaning.reason)


def _without_metrics(grids: Sequence[Grid]) -> str:
    """Return the message for a file without results, with its columns."""
    header = list(dict.fromkeys(name for grid in grids for name in grid.header))
    return (
        f"there is no column metric and no column of a metric; the columns are {', '.join(header)}; "
        f"the metrics are {', '.join(METRIC_COLUMNS)}, also in everyday wording as Images/sec"
    )
