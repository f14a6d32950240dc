"""The tables of the dataset as pandas frames and as files; types and order come from ``columns``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, csv, parquet

from dlperf_study.core.errors import RecordError
from dlperf_study.core.user_commands import command_line
from dlperf_study.core.writing import FORMULA, NUMBER, naming, replacing
from dlperf_study.metrics.columns import COLUMNS, Dtype, Metric, TableName, list_columns

Row = Mapping[str, Any]

ROWS_AT_ONCE = 1 << 17
#: A longer table is written as Parquet alone: no spreadsheet opens more rows of CSV.
LONGEST_CSV = (1 << 20) - 1
#: Where more than this share of the first values differ, Parquet would look for equal ones in vain.
SAMPLE, DISTINCT_SHARE = 1 << 12, 0.5
#: Tables that older versions wrote under another name: those files are removed when the table is written.
FORMER_NAMES = {TableName.DIAGNOSTICS: "complaints"}

#: Without these a table is none of any version.
_ESSENTIAL = {"configuration_id", "status", "window", "step", "seconds"}
_REMEDY = f"build the dataset with `{command_line('report NAME')}`, or `ingest` for third-party logs"
_CSV = csv.WriteOptions(quoting_style="needed")

ROWS_THAT_WAIT = 2_000
#: A column of few distinct strings: the index of the string of each row, and the strings.
RepeatedText = tuple[NDArray[np.integer[Any]], Sequence[str]]


def frame_of_rows(table: TableName, rows: Sequence[Row]) -> pd.DataFrame:
    """Return a frame with every column of the table."""
    columns = {}
    for column in list_columns(table):
        columns[column.name] = pd.Series([row.get(column.name) for row in rows], dtype=str(column.dtype_in(table)))
    settings = dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)
    for name in settings:
        columns[name] = pd.Series([row.get(name) for row in rows]).convert_dtypes()
    # The copy keeps columns of one type together: pandas warns of more than a hundred that are kept apart.
    return pd.DataFrame(columns, copy=False).copy()


class GrowingFrame:
    """A frame that grows; few rows wait as mappings, which are large."""

    def __init__(self, table: TableName) -> None:
        self._table = table
        self._frames: list[pd.DataFrame] = []
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_THAT_WAIT:
            self._frames.append(frame_of_rows(self._table, self._rows))
            self._rows = []

    @property
    def frame(self) -> pd.DataFrame:
        """All rows, as ``frame_of_rows`` returns them."""
        last = frame_of_rows(self._table, self._rows)
        if not self._frames:
            return last
        frame = pd.concat([*self._frames, last], ignore_index=True)
        settings = [name for name in frame if name not in COLUMNS]
        return frame.assign(**{name: frame[name].convert_dtypes() for name in settings})


def step_rows(
    configuration_id: str,
    repetition: int,
    *,
    rank: NDArray[Any],
    window: RepeatedText,
    step: NDArray[Any],
    seconds: NDArray[Any],
    loss: NDArray[Any],
) -> pa.Table:
    """Return one run's steps as table rows; NaN is missing."""
    values: dict[str, NDArray[Any] | RepeatedText] = {
        "configuration_id": (np.zeros(step.size, np.int32), [configuration_id]),
        "repetition": np.full(step.size, repetition),
        "rank": rank,
        "window": window,
        "step": step,
        "seconds": seconds,
        "loss": loss,
    }
    arrays = {}
    for column in list_columns(TableName.STEPS):
        column_values = values[column.name]
        if isinstance(column_values, tuple):
            codes, strings = column_values
            array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(strings, pa.string()))
        else:
            array = pa.array(column_values, from_pandas=True)
        arrays[column.name] = array
    return pa.table(arrays)


def joined(table: TableName, pieces: Sequence[pa.Table]) -> pa.Table:
    """Return pieces of a table as one, with the table's types."""
    empty = rows = pa.Table.from_pandas(frame_of_rows(table, []), preserve_index=False)
    if pieces:
        rows = pa.concat_tables(pieces).unify_dictionaries()
    return rows.replace_schema_metadata(empty.schema.metadata)


def write(table: TableName, content: pd.DataFrame, folder: Path) -> None:
    """Write a table as Parquet, and as CSV unless too long."""
    with growing_table(table, folder) as growing:
        growing.write(pa.Table.from_pandas(content, preserve_index=False))


@contextmanager
def growing_table(table: TableName, folder: Path) -> Iterator["GrowingTable"]:
    """Yield a growing table; without an error it replaces the old files."""
    file, csv_file = _file(table, folder), folder / f"{table}.csv"
    with replacing(file) as unfinished:
        with closing(GrowingTable(table, unfinished, file)) as growing:
            yield growing
            growing.end()
        if growing.rows <= LONGEST_CSV:
            _write_csv(unfinished, csv_file)
        else:
            csv_file.unlink(missing_ok=True)
    for suffix in (".parquet", ".csv") if table in FORMER_NAMES else ():
        (folder / f"{FORMER_NAMES[table]}{suffix}").unlink(missing_ok=True)


class GrowingTable:
    """A table written as Parquet, in pieces of at most ROWS_AT_ONCE rows.

    ``unfinished`` is the file that is written, and ``file`` the one that errors name; ``rows`` counts those written.
    """

    def __init__(self, table: TableName, unfinished: Path, file: Path) -> None:
        self._table, self._unfinished, self._file = table, unfinished, file
        self._pieces: list[pa.Table] = []
        self._parquet: parquet.ParquetWriter | None = None
        self._waiting = self.rows = 0

    def add(self, piece: pa.Table) -> None:
        """Add rows, as ``step_rows`` makes them."""
        self._pieces.append(piece)
        self._waiting += len(piece)
        if self._waiting >= ROWS_AT_ONCE:
            self._flush()

    def write(self, rows: pa.Table) -> None:
        """Write rows; all must have the columns of the first ones."""
        with naming(self._file):
            if not self._parquet:
                self._parquet = parquet.ParquetWriter(self._unfinished, rows.schema, use_dictionary=_repetitive(rows))
            self._parquet.write_table(rows)
        self.rows += len(rows)

    def end(self) -> None:
        """Write the remaining rows; a table without rows is written too."""
        if self._pieces or not self._parquet:
            self._flush()

    def close(self) -> None:
        """Close the file."""
        with naming(self._file):
            if self._parquet:
                self._parquet.close()

    def _flush(self) -> None:
        self.write(joined(self._table, self._pieces))
        self._pieces, self._waiting = [], 0


def _repetitive(rows: pa.Table) -> list[str]:
    """Return the columns that a dictionary makes smaller."""
    samples = {name: rows[name][:SAMPLE] for name in rows.column_names}
    return [name for name, sample in samples.items() if len(sample.unique()) < DISTINCT_SHARE * len(sample)]


def _write_csv(parquet_file: Path, file: Path) -> None:
    """Write the rows of a Parquet file as CSV."""
    with (
        naming(file),
        replacing(file) as unfinished,
        parquet.ParquetFile(parquet_file) as rows,
        csv.CSVWriter(unfinished, rows.schema_arrow, write_options=_CSV) as csv_writer,
    ):
        for batch in rows.iter_batches():
            csv_writer.write_batch(_disarm_formulas(batch))


def _disarm_formulas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose texts are no formulas of a spreadsheet."""
    for index, column in enumerate(batch.columns):
        is_dictionary = pa.types.is_dictionary(column.type)
        strings = column.dictionary if is_dictionary else column
        if not (pa.types.is_string(strings.type) or pa.types.is_large_string(strings.type)):
            continue
        is_number = compute.match_substring_regex(strings, pattern=rf"\A(?:{NUMBER})\z")
        text = compute.replace_substring_regex(strings, pattern=FORMULA, replacement=r"'\1")
        text = compute.if_else(is_number, strings, text)
        column = pa.DictionaryArray.from_arrays(column.indices, text) if is_dictionary else text
        batch = batch.set_column(index, batch.schema.field(index), column)
    return batch


def require(table: TableName, folder: Path) -> Path:
    """Return the file of a table; raises RecordError if missing."""
    file = _file(table, folder)
    if not file.exists():
        raise RecordError(f"{file}: no such table; {_REMEDY}")
    return file


def read(
    table: TableName,
    folder: Path,
    defaults: Mapping[str, Any] | None = None,
    configuration_ids: Collection[str] | None = None,
) -> pd.DataFrame:
    """Read a table, also of an earlier or later version.

    ``defaults``: values of columns that were added later; others are missing values. Columns that this version does not
    know come last. ``configuration_ids``: of which configurations; None: of all.
    Raises RecordError when it has not been written, is damaged, or can't do without a column that it does not have.
    """
    file = require(table, folder)
    try:
        content = pd.read_parquet(
            file, filters=None if configuration_ids is None else _condition(file, configuration_ids)
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RecordError(f"{file}: is not a table ({error}); {_REMEDY}") from error
    columns: dict[str, pd.Series] = {}
    for column in list_columns(table):
        expected, default = column.dtype_in(table), (defaults or {}).get(column.name)
        try:
            columns[column.name] = _stored_or_default(content, column, expected, default)
        except ValueError as error:
            raise RecordError(f"{file}: column {column.name} {error}; {_REMEDY}") from None
    if [*columns] == [*content][: len(columns)]:
        return content
    unknown = content.drop(columns=columns, errors="ignore")
    return pd.DataFrame(columns | dict(unknown.items()), content.index, copy=False).copy()


def _condition(file: Path, configuration_ids: Collection[str]) -> compute.Expression | None:
    """Return the filter for these configurations; None for tables without rows."""
    # There a column of strings has no type, and is equal to none.
    if pa.types.is_null(parquet.read_schema(file).field("configuration_id").type):
        return None
    return compute.field("configuration_id").isin(pa.array([*configuration_ids], pa.string()))


def _stored_or_default(content: pd.DataFrame, column: Metric, expected: Dtype, default: Any) -> pd.Series:
    """Return a stored or default column; raises ValueError if invalid."""
    if column.name in content:
        stored = content[column.name]
        # A column of strings without rows has no type in the file.
        if str(stored.dtype) != expected and len(content):
            raise ValueError(f"is {stored.dtype}, and must be {expected}")
        return stored
    if column.name in _ESSENTIAL or (default is None and column.dtype in (Dtype.INTEGER, Dtype.FLAG)):
        raise ValueError("is missing")
    return pd.Series([default] * len(content), content.index, dtype=str(expected))


def _file(table: TableName, folder: Path) -> Path:
    return folder / f"{table}.parquet"
