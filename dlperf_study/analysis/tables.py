"""The tables of the dataset as pandas frames and as files; types and order come from ``columns``."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from dlperf_study.columns import Column, Table, columns_of
from dlperf_study.errors import EvidenceError

Row = Mapping[str, Any]

#: How many rows of a table that grows are held before they are written.
ROWS_AT_ONCE = 1 << 17
#: Where more than this share of the first values differ, Parquet would look for equal ones in vain.
SAMPLE, DISTINCT_SHARE = 1 << 12, 0.5


def frame_of_rows(table: Table, rows: Sequence[Row]) -> pd.DataFrame:
    """Return a frame with every column of the table; what a row doesn't hold is missing."""
    return frame(table, {column.name: [row.get(column.name) for row in rows] for column in columns_of(table)})


def frame(table: Table, values: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame from one array or list per column of the table."""
    return pd.DataFrame({column.name: _series(column, table, values) for column in columns_of(table)}, copy=False)


def write(table: Table, content: pd.DataFrame, folder: Path) -> None:
    """Write a table as Parquet and as CSV, in which a missing value is empty."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = pa.Table.from_pandas(content, preserve_index=False)
    with closing(_Files(table, folder, columns)) as files:
        files.write(columns)


class Growing:
    """A table written piece by piece, so that no more than ROWS_AT_ONCE of its rows are held."""

    def __init__(self, table: Table, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._table, self._folder = table, folder
        self._pieces: list[pa.Table] = []
        self._files: _Files | None = None

    def add(self, piece: pd.DataFrame) -> None:
        """Add rows; they have every column of the table."""
        columns = pa.Table.from_pandas(piece, preserve_index=False)
        self._pieces.append(columns.cast(_many_categories(columns.schema)))
        if sum(len(held) for held in self._pieces) >= ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        """Write what is held; a table without rows is a table too."""
        if not self._files and not self._pieces:
            write(self._table, frame_of_rows(self._table, []), self._folder)
        self._flush()
        if self._files:
            self._files.close()

    def _flush(self) -> None:
        if not self._pieces:
            return
        columns = pa.concat_tables(self._pieces).unify_dictionaries()
        self._files = self._files or _Files(self._table, self._folder, columns)
        self._files.write(columns)
        self._pieces = []


class _Files:
    """The two files of a table, of which some rows are known: Parquet keeps each value once where these repeat."""

    def __init__(self, table: Table, folder: Path, rows: pa.Table) -> None:
        repetitive = [name for name in rows.column_names if _is_repetitive(rows[name])]
        self._parquet = parquet.ParquetWriter(_file(table, folder), rows.schema, use_dictionary=repetitive)
        options = csv.WriteOptions(quoting_style="needed")
        self._csv = csv.CSVWriter(folder / f"{table}.csv", rows.schema, write_options=options)

    def write(self, rows: pa.Table) -> None:
        """Write rows into both."""
        self._parquet.write_table(rows)
        self._csv.write_table(rows)

    def close(self) -> None:
        """Close both."""
        self._parquet.close()
        self._csv.close()


def read(table: Table, folder: Path) -> pd.DataFrame:
    """Read a table; raises EvidenceError when it has not been written."""
    file = _file(table, folder)
    if not file.exists():
        raise EvidenceError(f"{file}: there is no dataset yet; make one with `python -m dlperf_study collect`")
    return pd.read_parquet(file)


def _is_repetitive(column: pa.ChunkedArray) -> bool:
    """Say whether the first values of a column repeat each other."""
    some = column[:SAMPLE]
    return len(some.unique()) < DISTINCT_SHARE * len(some)


def _many_categories(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which more categories have room than one piece of a table has."""
    wide = [
        field.with_type(pa.dictionary(pa.int32(), field.type.value_type))
        if pa.types.is_dictionary(field.type)
        else field
        for field in schema
    ]
    return pa.schema(wide, schema.metadata)


def _series(column: Column, table: Table, values: Mapping[str, Any]) -> pd.Series:
    given = values[column.name]
    return given if isinstance(given, pd.Series) else pd.Series(given, dtype=str(column.dtype_in(table)), copy=False)


def _file(table: Table, folder: Path) -> Path:
    return folder / f"{table}.parquet"
