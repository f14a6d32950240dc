"""Runs of MLflow in its database ``mlflow.db``, which it makes by default since 3.7: each is one log.

The database is read in memory, so that it may be a member of an archive.
"""

import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from typing import Any

from dlperf_study.core.errors import LogError
from dlperf_study.readers.blocks import DAMAGE, LogSource
from dlperf_study.readers.log_files import LogFile
from dlperf_study.readers.scalar_rows import Scalars, scalar_rows

#: What is before the scalars of a line.
METRIC_ROW = "MLflow row: "
#: The name that MLflow gives to its database, and to the folder next to it for what runs produced.
DATABASE, ARTIFACTS = "mlflow.db", "mlruns"
_METRICS = "SELECT step, timestamp, key, value FROM metrics WHERE run_uuid = ? AND NOT is_nan ORDER BY timestamp"


@dataclass(frozen=True)
class MlflowDatabaseRun(LogSource):
    """A run as one log: ``path`` and ``member`` are those of the database."""

    run_id: str = ""

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open the rows of all metrics for reading, ordered by time.

        Raises:
            LogError: the database can't be read, the run did not finish, or it is not known which of the metrics is a
                rate or the time of a step.

        """
        [[status, stage]] = _rows(self, "SELECT status, lifecycle_stage FROM runs WHERE run_uuid = ?", self.run_id)
        require_finished(str(self), status, stage)
        values = (
            Scalars(step, milliseconds / 1000, {name: value})
            for step, milliseconds, name, value in _rows(self, _METRICS, self.run_id)
        )
        yield io.BytesIO(b"".join(scalar_rows(str(self), METRIC_ROW, values)))


def require_finished(name: str, status: str, stage: str) -> None:
    """Raise LogError if MLflow does not know that a run ended well."""
    if (status, stage) != ("FINISHED", "active"):
        raise LogError(f"{name}: the run is not FINISHED and active in MLflow, but {status} and {stage}")


def runs_in_database(file: LogFile) -> list[LogFile]:
    """Return the runs in a database, in the order of their start; raises LogError if it can't be read."""
    runs = []
    for (run_id,) in _rows(file.source, "SELECT run_uuid FROM runs ORDER BY start_time, run_uuid"):
        parts = (*file.parts, run_id)
        source = MlflowDatabaseRun(file.source.path, file.source.member, "/".join(parts[1:]), run_id=run_id)
        runs.append(replace(file, source=source, parts=parts))
    return runs


def _rows(source: LogSource, query: str, *values: str) -> list[tuple[Any, ...]]:
    """Return the answer of a database to a query."""
    try:
        with LogSource.open(source) as file:
            content = file.read()
        with closing(sqlite3.connect(":memory:")) as database:
            # Of no bytes it would be a MemoryError.
            if content:
                database.deserialize(content)
            return database.execute(query, values).fetchall()
    except (OSError, sqlite3.Error, *DAMAGE) as error:
        raise LogError(f"{source}: can't be read as a database of MLflow: {error}") from error
