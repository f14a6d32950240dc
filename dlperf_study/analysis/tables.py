"""The tables of the dataset as pandas frames and as files; types and order come from ``columns``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from dlperf_study.columns import Column, Table, columns_of
from dlperf_study.errors import EvidenceError

Row = Mapping[str, Any]


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
    parquet.write_table(columns, _file(table, folder))
    csv.write_csv(columns, folder / f"{table}.csv", csv.WriteOptions(quoting_style="needed"))


def read(table: Table, folder: Path) -> pd.DataFrame:
    """Read a table; raises EvidenceError when it has not been written."""
    file = _file(table, folder)
    if not file.exists():
        raise EvidenceError(f"{file}: there is no dataset yet; make one with `python -m dlperf_study collect`")
    return pd.read_parquet(file)


def _series(column: Column, table: Table, values: Mapping[str, Any]) -> pd.Series:
    given = values[column.name]
    return given if isinstance(given, pd.Series) else pd.Series(given, dtype=str(column.dtype_in(table)), copy=False)


def _file(table: Table, folder: Path) -> Path:
    return folder / f"{table}.parquet"
