"""A run in the file store of MLflow, as lines: one JSON object per value of a metric.

The folder of a run has a file ``meta.yaml`` and a folder ``metrics`` with a file per metric, in folders for a name with
slashes. Each line of it is a time in milliseconds, a value and a step.
"""

import heapq
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import starmap
from operator import attrgetter

import yaml

from dlperf_study.errors import LogError
from dlperf_study.logs.log_source import DAMAGE, LogSource
from dlperf_study.logs.scalar_rows import Scalars, scalar_rows

#: What is before the scalars of a line.
METRIC_ROW = "MLflow row: "
#: The name of the file that states what MLflow knows of a run, and of the folder of its metrics.
META_FILE, METRICS_FOLDER = "meta.yaml", "metrics"
_STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}


@dataclass(frozen=True)
class MlflowRun(LogSource):
    """A run as one log: ``path`` and ``member`` are those of its ``meta.yaml``; ``metrics``: names and files."""

    metrics: tuple[tuple[str, LogSource], ...] = ()

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open the rows of all metrics for reading, ordered by time.

        Raises:
            LogError: a file can't be read, the run did not finish, a line is no value of a metric, or it is not known
                which of the metrics is a rate or the time of a step.

        """
        self._require_success()
        values = heapq.merge(*starmap(self._values, self.metrics), key=attrgetter("wall_time"))
        yield io.BytesIO(b"".join(scalar_rows(str(self), METRIC_ROW, values)))

    def _require_success(self) -> None:
        meta_file = LogSource(self.path, self.member, str(self).removesuffix(METRICS_FOLDER) + META_FILE)
        try:
            meta = yaml.safe_load(_text(meta_file))
            status, stage = _STATUS[meta["status"]], meta["lifecycle_stage"]
        except (yaml.YAMLError, KeyError, TypeError) as error:
            raise LogError(f"{meta_file}: does not state status and lifecycle_stage of a run of MLflow") from error
        if (status, stage) != ("FINISHED", "active"):
            raise LogError(f"{self}: the run is not FINISHED and active in MLflow, but {status} and {stage}")

    def _values(self, name: str, source: LogSource) -> Iterator[Scalars]:
        for line_number, line in enumerate(_text(source).splitlines(keepends=True), 1):
            try:
                milliseconds, value, step = line.removesuffix("\n").split(" ")
                scalars = Scalars(int(step), int(milliseconds) / 1000, {name: float(value)})
            except ValueError as error:
                problem = f"line {line_number} is no time, value and step: {line[:80]!r}"
                raise LogError(f"{source}: {problem}") from error
            if not line.endswith("\n"):
                raise LogError(f"{source}: truncated: line {line_number} does not end")
            yield scalars


def _text(source: LogSource) -> str:
    try:
        with source.open() as file:
            return file.read().decode()
    except (OSError, UnicodeDecodeError, *DAMAGE) as error:
        raise LogError(f"{source}: can't be read: {error}") from error
