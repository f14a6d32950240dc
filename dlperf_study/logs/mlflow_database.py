"""Runs in an MLflow database ``mlflow.db``; each run is one log.

A database in an archive is read into memory, any other from disk.
"""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from dlperf_study.core.errors import LogError
from dlperf_study.core.wording import counted
from dlperf_study.logs.blocks import Lines, LogSource, read_whole
from dlperf_study.logs.log_files import LogFile
from dlperf_study.logs.scalar_rows import Scalars, scalar_rows

METRIC_ROW = "MLflow row: "
DATABASE, ARTIFACTS = "mlflow.db", "mlruns"
#: A larger one does not fit into the memory of a small machine, twice.
_LARGEST = 1 << 30
#: How many instructions of SQLite the queries of a database may take: a row of a metric takes about 25, and 100 bytes.
_STEPS_AT_ONCE, _STEPS, _STEPS_OF_BYTE = 100_000, 200, 20
_BEGINNING = b"SQLite format 3\0"
_STATUS = "SELECT status, lifecycle_stage FROM runs WHERE run_uuid = ?"
#: Of a value that is no number there is 0, and a flag.
_METRICS = (
    "SELECT step, timestamp, key, CASE WHEN is_nan THEN 'nan' ELSE value END FROM metrics WHERE run_uuid = ? "
    "ORDER BY timestamp"
)


@dataclass(frozen=True)
class MlflowDatabaseRun(LogSource):
    """A run as one log; ``path`` and ``member`` locate the database."""

    run_id: str = ""

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open the rows of all metrics, ordered by time."""
        with _open_database(self) as database:
            rows = list(_rows(self, database, _STATUS, self.run_id))
            if len(rows) != 1:
                raise LogError(f"{self}: has {counted(len(rows), 'row')} in the table of runs")
            [(status, stage)] = rows
            require_finished(str(self), status, stage)
            values = map(self._scalars, _rows(self, database, _METRICS, self.run_id))
            yield Lines(scalar_rows(str(self), METRIC_ROW, values))

    def _scalars(self, row: tuple[Any, ...]) -> Scalars:
        """Return a row as scalars; SQLite does not enforce types."""
        step, milliseconds, name, value = row
        try:
            return Scalars(int(step), int(milliseconds) / 1000, {str(name): float(value)})
        except (TypeError, ValueError, OverflowError) as error:
            raise LogError(f"{self}: a row of metrics is no step, time and value: {str(row)[:80]}") from error


def require_finished(name: str, status: str, stage: str) -> None:
    """Raise LogError unless the run finished."""
    if (status, stage) != ("FINISHED", "active"):
        raise LogError(f"{name}: the run is {status} and {stage} in MLflow; only FINISHED and active runs are read")


def runs_in_database(file: LogFile) -> list[LogFile]:
    """Return the runs of a database by start; raises LogError."""
    runs = []
    with _open_database(file.source) as database:
        for (run_id,) in _rows(file.source, database, "SELECT run_uuid FROM runs ORDER BY start_time, run_uuid"):
            parts = (*file.parts, str(run_id))
            source = MlflowDatabaseRun(file.source.path, file.source.member, "/".join(parts[1:]), run_id=str(run_id))
            runs.append(replace(file, source=source, parts=parts))
    return runs


@contextmanager
def _open_database(source: LogSource) -> Iterator[sqlite3.Connection]:
    """Open a database for reading."""
    content = b""
    with _readable(source):
        if not source.member and _begins_as_database(source.path):
            _require_all_changes(source)
            size = source.path.stat().st_size
            database = sqlite3.connect(f"{source.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        else:
            content = read_whole(source, _LARGEST)
            size = len(content)
            database = sqlite3.connect(":memory:")
    with closing(database), _readable(source):
        # Of no bytes it would be a MemoryError.
        if content:
            database.deserialize(content)
        # Python handles no signal within a query. Pages that refer to each other make rows without end.
        steps = _STEPS + _STEPS_OF_BYTE * size // _STEPS_AT_ONCE
        database.set_progress_handler(itertools.repeat(0, steps).__next__, _STEPS_AT_ONCE)
        # A query would compute what it reads from a view or a column, which may have no end.
        for table in ("runs", "metrics"):
            [kind] = database.execute("SELECT type FROM sqlite_master WHERE name = ?", [table]).fetchone() or [""]
            columns = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
            if kind != "table" or any(hidden for *_, hidden in columns):
                raise sqlite3.DatabaseError("runs and metrics must be tables of stored columns")
        yield database


def _require_all_changes(source: LogSource) -> None:
    for suffix in ("-wal", "-journal"):
        log = source.path.with_name(f"{source.path.name}{suffix}")
        if log.exists() and log.stat().st_size:
            raise LogError(f"{source}: {log.name} has changes that are not in it yet; stop MLflow, then read it again")


def _rows(source: LogSource, database: sqlite3.Connection, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
    """Yield the answer of a database to a query."""
    with _readable(source):
        # With "yield from", a reader that ends early would close the cursor of a closed database.
        for row in database.execute(query, values):  # noqa: UP028
            yield row


def _begins_as_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


@contextmanager
def _readable(source: LogSource) -> Iterator[None]:
    try:
        yield
    # What SQLite says of a damaged database may be no text.
    except (sqlite3.Error, ValueError, OverflowError) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise LogError(
                f"{source}: reading takes longer than a database of this size needs; it is probably damaged"
            ) from error
        raise LogError(f"{source}: can't be read as a database of MLflow: {error}") from error
