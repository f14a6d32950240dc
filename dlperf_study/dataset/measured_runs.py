"""Reads the runs of a study, by several processes where there are many, and keeps what its tables need of each."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dlperf_study.core.errors import Diagnostic, EvidenceError, Severity
from dlperf_study.core.paths import ConfigurationPaths, RunPaths
from dlperf_study.core.process_pool import mapped_in_processes, processes_for
from dlperf_study.dataset.run_table import run_diagnostics, run_row, steadiness_of, step_rows
from dlperf_study.evidence.run import DuplicateRuns, Run, RunProcesses, copied_run, read_run

#: With fewer runs, starting processes takes longer than reading.
WORTH_A_POOL_RUNS = 2_000


@dataclass(frozen=True)
class ConfigurationToRead:
    """A configuration with its runs; ``tolerance``: by how much the parts of a steady window may differ."""

    identity: str
    paths: ConfigurationPaths
    tolerance: float


@dataclass(frozen=True)
class MeasuredRun:
    """What tables need of a run, as the run itself may be large; without ``row`` a diagnostic says why.

    ``steps``: its rows of the table of steps, None without ranks. ``processes``: those that wrote its logs.
    """

    paths: RunPaths
    diagnostics: list[Diagnostic]
    row: dict[str, Any] | None = None
    steps: pa.Table | None = None
    processes: RunProcesses | None = None


def read_measured_runs(configurations: Sequence[ConfigurationToRead]) -> Iterator[MeasuredRun]:
    """Yield the runs of all configurations, in order; one whose logs were copied from an earlier one is failed.

    Raises:
        EvidenceError: a process that reads was killed, as happens if there is not enough memory.

    """
    duplicates = DuplicateRuns()
    for configuration, runs in zip(configurations, _runs_of_each(configurations), strict=True):
        for run in runs:
            reason = duplicates.copied(run.processes) if run.processes else ""
            yield _measured_copy(configuration, run, reason) if reason else run


def _runs_of_each(configurations: Sequence[ConfigurationToRead]) -> Iterator[list[MeasuredRun]]:
    processes = processes_for(len(configurations))
    if processes < 2 or _fewer_than(WORTH_A_POOL_RUNS, configurations):
        yield from map(_runs_of, configurations)
        return
    try:
        yield from mapped_in_processes(_runs_of, configurations, processes)
    except BrokenProcessPool as error:
        raise EvidenceError("a process that reads runs was killed; is there enough memory?") from error


def _fewer_than(runs: int, configurations: Iterable[ConfigurationToRead]) -> bool:
    """Return whether there are fewer runs; counts no further than that."""
    for configuration in configurations:
        runs -= sum(1 for _ in configuration.paths.runs())
        if runs <= 0:
            return False
    return True


def _runs_of(configuration: ConfigurationToRead) -> list[MeasuredRun]:
    return [_measured_run(configuration, paths) for paths in configuration.paths.runs()]


def _measured_run(configuration: ConfigurationToRead, paths: RunPaths) -> MeasuredRun:
    """Read one run of a configuration; of an unreadable one there is a diagnostic."""
    try:
        return _rows_of(read_run(paths), configuration, paths)
    except EvidenceError as error:
        reason = str(error) if paths.run_file.exists() else "interrupted, it has no run.json"
        message = f"not counted: {reason}"
        diagnostic = Diagnostic("evidence", message, Severity.ERROR, configuration.identity, paths.repetition)
        return MeasuredRun(paths, [diagnostic])


def _measured_copy(configuration: ConfigurationToRead, run: MeasuredRun, reason: str) -> MeasuredRun:
    return _rows_of(copied_run(read_run(run.paths), reason), configuration, run.paths)


def _rows_of(run: Run, configuration: ConfigurationToRead, paths: RunPaths) -> MeasuredRun:
    steadiness = steadiness_of(run, configuration.tolerance)
    return MeasuredRun(
        paths,
        diagnostics=run_diagnostics(run, steadiness),
        row=run_row(run, steadiness),
        steps=step_rows(run) if run.ranks else None,
        processes=RunProcesses.of(run),
    )
