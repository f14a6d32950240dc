"""Files of experiment trackers: which are logs, and their generated names.

A run of MLflow is in its database, or in a folder with ``meta.yaml`` and ``metrics``, one file per metric. Each line is
a time in milliseconds, a value and a step. A run is one log with a JSON object per value.
"""

import heapq
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import starmap
from operator import attrgetter

import yaml

from dlperf_study.core.errors import LogError
from dlperf_study.logs import mlflow_database
from dlperf_study.logs.blocks import Lines, LogSource, read_whole
from dlperf_study.logs.event_files import is_event_file
from dlperf_study.logs.log_files import CONFIGURATION_FILE, LogFile
from dlperf_study.logs.scalar_rows import Scalars, scalar_rows
from dlperf_study.logs.wandb_files import is_wandb_file
from dlperf_study.study.strict_yaml import MAX_BYTES

META_FILE, METRICS_FOLDER = "meta.yaml", "metrics"
#: A metric has 30 bytes a step.
_LONGEST_METRIC = 1 << 26
_STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
#: The names on a path, from the given folder down.
Names = tuple[str, ...]
_MLFLOW_RUN, _MLFLOW_EXPERIMENT = re.compile("[0-9a-f]{32}"), re.compile(r"\d+")
#: What MLflow keeps in the folder of an experiment, or of a run, that is no run.
_MLFLOW_NO_RUNS = ("models", "datasets", "inputs", "outputs", "tags", "traces")
_MLFLOW_MODEL = re.compile("m-[0-9a-f]{32}")
#: The names that Weights & Biases gives to a link to the last run, and to the folder of a run.
_WANDB_LINK = "latest-run"
_WANDB_RUN = re.compile(rf"{_WANDB_LINK}|(?:offline-)?run-\d{{8}}_\d{{6}}-.+")
#: What Weights & Biases logs of itself, above the folders of its runs.
_WANDB_OWN_LOG = re.compile(r"debug[\w-]*\.log")


@dataclass(frozen=True)
class MlflowRun(LogSource):
    """A run as one log, located by its ``meta.yaml``; ``metrics``: files by name."""

    metrics: tuple[tuple[str, LogSource], ...] = ()

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open the rows of all metrics, ordered by time."""
        meta_file = LogSource(self.path, self.member, str(self).removesuffix(METRICS_FOLDER) + META_FILE)
        try:
            meta = yaml.safe_load(_text(meta_file, MAX_BYTES))
            status, stage = _STATUS[meta["status"]], meta["lifecycle_stage"]
        except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise LogError(f"{meta_file}: has no status and lifecycle_stage of an MLflow run") from error
        mlflow_database.require_finished(str(self), status, stage)
        values = heapq.merge(*starmap(self._values, self.metrics), key=attrgetter("wall_time"))
        yield Lines(scalar_rows(str(self), mlflow_database.METRIC_ROW, values))

    def _values(self, name: str, source: LogSource) -> Iterator[Scalars]:
        for line_number, line in enumerate(io.StringIO(_text(source, _LONGEST_METRIC), newline="\n"), 1):
            try:
                milliseconds, value, step = line.removesuffix("\n").split(" ")
                scalars = Scalars(int(step), int(milliseconds) / 1000, {name: float(value)})
            except ValueError as error:
                problem = f"line {line_number} is not a time, a value and a step: {line[:80]!r}"
                raise LogError(f"{source}: {problem}") from error
            if not line.endswith("\n"):
                raise LogError(f"{source}: truncated: line {line_number} does not end")
            yield scalars


def _text(source: LogSource, most_bytes: int) -> str:
    try:
        return read_whole(source, most_bytes).decode()
    except UnicodeDecodeError as error:
        raise LogError(f"{source}: can't be read: {error}") from error


def collect_tracker_runs(files: Sequence[LogFile]) -> list[LogFile]:
    """Return possible logs; MLflow runs as one, without internal files."""
    runs = _mlflow_runs(files)
    databases = [file for file in files if file.name == mlflow_database.DATABASE]
    artifacts = {(*file.parts[:-1], mlflow_database.ARTIFACTS) for file in databases}
    wandb_folders = {file.parts[:-1] for file in files if is_wandb_file(file.name)}
    # An archive may have the last run twice: the link to it was packed as a folder.
    linked = set()
    for file in files:
        if is_wandb_file(file.name) and file.parts[-2:-1] == (_WANDB_LINK,):
            linked.add(file.parts)
    wandb_runs = set()
    for file in files:
        if file.parts[-2:-1] != (_WANDB_LINK,):
            wandb_runs.add((file.parts[:-2], file.name))
    logs = []
    for file in files:
        if file.parts in linked and (file.parts[:-2], file.name) in wandb_runs:
            continue
        is_artifact = any(file.parts[: len(folder)] == folder for folder in artifacts)
        if file.name == META_FILE and file.parts[:-1] in runs:
            logs.append(runs[file.parts[:-1]])
        elif file.name == mlflow_database.DATABASE:
            logs += mlflow_database.runs_in_database(file)
        elif not is_artifact and not _is_for_itself(file, runs, wandb_folders):
            logs.append(file)
    return logs


def _is_for_itself(file: LogFile, mlflow_folders: Iterable[Names], wandb_folders: Iterable[Names]) -> bool:
    """Return whether a file is internal to a tracker."""
    if file.name == CONFIGURATION_FILE or is_wandb_file(file.name):
        return False
    folder = file.parts[:-1]
    if file.name == META_FILE and any(folder[:-1] == run[:-2] for run in mlflow_folders):
        # An experiment in the store of these runs; MLflow makes one that has none.
        return True
    if any(file.parts[: len(run)] == run for run in (*mlflow_folders, *wandb_folders)):
        return True
    for experiment in {run[:-1] for run in mlflow_folders}:
        below = file.parts[len(experiment) :] if folder[: len(experiment)] == experiment else ()
        if below == (META_FILE,) or (len(below) > 1 and below[0] in _MLFLOW_NO_RUNS):
            return True
    return bool(_WANDB_OWN_LOG.fullmatch(file.name)) and any(folder == run[:-1] for run in wandb_folders)


def names_by_people(parts: Sequence[str]) -> Sequence[str]:
    """Return the names in a path that no tracker generated."""
    *folders, name = parts
    if is_event_file(name):
        return folders
    if is_wandb_file(name):
        return _remove_last(folders, _WANDB_RUN)
    if folders and folders[-1] == mlflow_database.DATABASE:
        return folders[:-1]
    if name == METRICS_FOLDER and folders and _MLFLOW_RUN.fullmatch(folders[-1]):
        return _remove_last(folders[:-1], _MLFLOW_EXPERIMENT)
    return parts


def _remove_last(folders: Sequence[str], made_up: re.Pattern[str]) -> Sequence[str]:
    """Drop the last folder if a tracker generated its name."""
    if folders and made_up.fullmatch(folders[-1]):
        return folders[:-1]
    return folders


def _mlflow_runs(files: Sequence[LogFile]) -> dict[Names, LogFile]:
    """Return MLflow runs by folder, also without metrics."""
    meta_files = {file.parts[:-1]: file for file in files if file.name == META_FILE}
    metrics: dict[Names, list[LogFile]] = defaultdict(list)
    for file in files:
        for index, name in enumerate(file.parts):
            if name == METRICS_FOLDER and file.parts[:index] in meta_files:
                metrics[file.parts[:index]].append(file)
    runs = {}
    for folder, meta_file in meta_files.items():
        # A file alone is in no folder.
        *above, name = folder or ("",)
        is_named_as_run = _MLFLOW_RUN.fullmatch(name) and not {*above[-1:]} & {*_MLFLOW_NO_RUNS}
        if is_named_as_run or (metrics[folder] and not _MLFLOW_MODEL.fullmatch(name)):
            source, parts = meta_file.source, (*folder, METRICS_FOLDER)
            named = tuple(("/".join(metric.parts[len(parts) :]), metric.source) for metric in metrics[folder])
            run = MlflowRun(source.path, source.member, "/".join(parts[1:]) or parts[0], metrics=named)
            runs[folder] = LogFile(run, parts, sum(metric.bytes for metric in metrics[folder]))
    return runs
