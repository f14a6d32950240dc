"""The runs of a study as tables: one row each, with the diagnostics of a run, and the rows of their steps.

Runs are read by several processes where there are many; of each is kept what the tables need.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from dlperf_study.core.errors import Diagnostic, RecordError, Severity
from dlperf_study.core.paths import ConfigurationPaths, RunPaths
from dlperf_study.core.process_pool import WHY_BROKEN, mapped_in_processes, processes_for
from dlperf_study.core.progress import Progress
from dlperf_study.dataset import tables
from dlperf_study.metrics import steady_state, throughput
from dlperf_study.metrics.columns import Source, compute_values, diagnosing_any_run, diagnosing_completed_run
from dlperf_study.records.run import (
    DuplicateRuns,
    Run,
    RunProcesses,
    copied_run,
    read_run,
    unexpected_as_record_error,
)

#: With fewer runs, starting processes takes longer than reading.
WORTH_A_POOL_RUNS = 2_000


def window_steadiness(run: Run, tolerance: float = steady_state.TOLERANCE) -> steady_state.WindowSteadiness | None:
    """Return whether the window is steady within ``tolerance``; None if incomplete."""
    if run.completed:
        return steady_state.WindowSteadiness.from_steps(throughput.slowest_training(run).step_seconds, tolerance)
    return None


def run_row(run: Run, steadiness: steady_state.WindowSteadiness | None = None) -> dict[str, Any]:
    """Return the columns of one run; only completed runs have measurements."""
    row = compute_values(Source.RUN, run) | run.configuration.displayed_values()
    if not run.completed:
        return row
    steadiness = steadiness or window_steadiness(run)
    return row | compute_values(Source.COMPLETED_RUN, run) | compute_values(Source.STEADINESS, steadiness)


def run_diagnostics(run: Run, steadiness: steady_state.WindowSteadiness | None = None) -> list[Diagnostic]:
    """Return every diagnostic about a run, its record's first."""
    diagnostics = list(run.diagnostics)
    for metric in diagnosing_any_run():
        assert metric.diagnose_any is not None  # That is what they were chosen by.
        diagnostics.extend(metric.diagnose_any(run))
    steadiness = steadiness or window_steadiness(run)
    for metric in diagnosing_completed_run() if run.completed else ():
        assert metric.diagnose is not None
        diagnostics.extend(metric.diagnose(steadiness if metric.source is Source.STEADINESS else run))
    return [
        replace(diagnostic, configuration_id=run.configuration_id, repetition=run.repetition)
        for diagnostic in diagnostics
    ]


def step_rows(run: Run) -> pa.Table:
    """Return a completed run's steps as rows of the table."""
    ranks, windows, steps, seconds, losses = [], [], [], [], []
    names: dict[str, int] = {}
    for log in run.ranks:
        for window in log.windows.values():
            count = window.step_seconds.size
            ranks.append(np.full(count, log.rank))
            windows.append(np.full(count, names.setdefault(window.name, len(names))))
            # A log may have one time for several steps: the row is that of the first of them.
            steps.append(window.steps_per_value * np.arange(count))
            seconds.append(window.step_seconds)
            losses.append(window.losses if window.losses.size else np.full(count, np.nan))
    return tables.step_rows(
        run.configuration_id,
        run.repetition,
        rank=np.concatenate(ranks),
        window=(np.concatenate(windows), list(names)),
        step=np.concatenate(steps),
        seconds=np.concatenate(seconds),
        loss=np.concatenate(losses),
    )


@dataclass(frozen=True)
class MeasuredRun:
    """A run's rows for the tables; without ``row``, a diagnostic.

    ``steps``: its rows of the table of steps, None without ranks. ``processes``: those that wrote its logs.
    """

    paths: RunPaths
    diagnostics: list[Diagnostic]
    row: dict[str, Any] | None = None
    steps: pa.Table | None = None
    processes: RunProcesses | None = None


def read_measured_runs(
    configurations: Sequence[ConfigurationPaths], tolerance: float, progress: Progress
) -> Iterator[MeasuredRun]:
    """Yield all runs in order; raises RecordError if a reader ends."""
    duplicates = DuplicateRuns()
    for runs in _runs_of_each(configurations, tolerance):
        for run in runs:
            if run.processes and (reason := duplicates.copied(run.processes)):
                yield _read_rows(copied_run(read_run(run.paths), reason), run.paths, tolerance)
            else:
                yield run
        progress.end()


def _runs_of_each(configurations: Sequence[ConfigurationPaths], tolerance: float) -> Iterator[list[MeasuredRun]]:
    processes = processes_for(len(configurations))
    read = partial(_read_configuration, tolerance=tolerance)
    runs = chain.from_iterable(configuration.runs() for configuration in configurations)
    # No more runs are counted than that.
    has_many_runs = next(islice(runs, WORTH_A_POOL_RUNS - 1, None), None) is not None
    if processes < 2 or not has_many_runs:
        yield from map(read, configurations)
        return
    try:
        yield from mapped_in_processes(read, configurations, processes)
    except BrokenProcessPool as error:
        raise RecordError(f"a process that reads runs ended early; {WHY_BROKEN}") from error


def _read_configuration(configuration: ConfigurationPaths, tolerance: float) -> list[MeasuredRun]:
    """Read a configuration's runs; an unreadable run becomes a diagnostic."""
    runs = []
    for paths in configuration.runs():
        try:
            runs.append(_read_rows(read_run(paths), paths, tolerance))
        except RecordError as error:
            reason = "interrupted, it has no run.json"
            if paths.run_file.exists():
                reason = str(error)
            configuration_id, message = configuration.folder.name, f"not counted: {reason}"
            diagnostic = Diagnostic("evidence", message, Severity.ERROR, configuration_id, paths.repetition)
            runs.append(MeasuredRun(paths, [diagnostic]))
    return runs


def _read_rows(run: Run, paths: RunPaths, tolerance: float) -> MeasuredRun:
    with unexpected_as_record_error(paths):
        steadiness = window_steadiness(run, tolerance)
        return MeasuredRun(
            paths,
            diagnostics=run_diagnostics(run, steadiness),
            row=run_row(run, steadiness),
            steps=step_rows(run) if run.ranks else None,
            processes=RunProcesses.of(run),
        )
