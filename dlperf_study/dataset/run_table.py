"""The runs of a study as tables: one row each, with the diagnostics of a run, and the rows of their steps.

Runs are read by several processes where there are many; of each is kept what the tables need.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from dlperf_study.core.errors import Diagnostic, EvidenceError, Severity
from dlperf_study.core.paths import ConfigurationPaths, RunPaths
from dlperf_study.core.process_pool import WHY_BROKEN, mapped_in_processes, processes_for
from dlperf_study.core.progress import Progress
from dlperf_study.dataset import tables
from dlperf_study.metrics.columns import Source, compute_values, diagnosing_any_run, diagnosing_completed_run
from dlperf_study.metrics.steady_state import TOLERANCE, WindowSteadiness
from dlperf_study.metrics.throughput import slowest_training
from dlperf_study.records.rank_log import Window
from dlperf_study.records.run import DuplicateRuns, Run, RunProcesses, copied_run, read_run

#: With fewer runs, starting processes takes longer than reading.
WORTH_A_POOL_RUNS = 2_000


def steadiness_of(run: Run, tolerance: float = TOLERANCE) -> WindowSteadiness | None:
    """Return whether the measured window is steady; None of a run that didn't complete.

    ``tolerance``: by how much the parts of a steady window may differ, a share of a step.
    """
    return WindowSteadiness.from_steps(slowest_training(run).step_seconds, tolerance) if run.completed else None


def run_row(run: Run, steadiness: WindowSteadiness | None = None) -> dict[str, Any]:
    """Return the columns of one run; a run that didn't complete has no measurements.

    ``steadiness``: from ``steadiness_of``, if it is known already.
    """
    row = compute_values(Source.RUN, run) | run.configuration.displayed_values()
    if not run.completed:
        return row
    steadiness = steadiness or steadiness_of(run)
    return row | compute_values(Source.COMPLETED_RUN, run) | compute_values(Source.STEADINESS, steadiness)


def run_diagnostics(run: Run, steadiness: WindowSteadiness | None = None) -> list[Diagnostic]:
    """Return every diagnostic about a run, those of its record first; none of them changes a number.

    ``steadiness``: as of ``run_row``.
    """
    diagnostics = list(run.diagnostics)
    for metric in diagnosing_any_run():
        assert metric.diagnose_any is not None  # That is what they were chosen by.
        diagnostics.extend(metric.diagnose_any(run))
    steadiness = steadiness or steadiness_of(run)
    for metric in diagnosing_completed_run() if run.completed else ():
        assert metric.diagnose is not None
        diagnostics.extend(metric.diagnose(steadiness if metric.source is Source.STEADINESS else run))
    return [replace(diagnostic, identity=run.identity, repetition=run.repetition) for diagnostic in diagnostics]


def step_rows(run: Run) -> pa.Table:
    """Return every step of every window of every rank of a completed run, as rows of the table of steps."""
    ranks: list[int] = []
    windows: list[Window] = []
    for log in run.ranks:
        windows += log.windows.values()
        ranks += [log.rank] * len(log.windows)
    # A log may have one time for several steps: the row is that of the first of them.
    counts = [window.step_seconds.size for window in windows]
    steps = [window.steps_per_value * np.arange(count) for window, count in zip(windows, counts, strict=True)]
    names = list(dict.fromkeys(window.name for window in windows))
    losses = [
        window.losses if window.losses.size else np.full(count, np.nan)
        for window, count in zip(windows, counts, strict=True)
    ]
    return tables.step_rows(
        run.identity,
        run.repetition,
        rank=np.repeat(ranks, counts),
        window=(np.repeat([names.index(window.name) for window in windows], counts), names),
        step=np.concatenate(steps),
        seconds=np.concatenate([window.step_seconds for window in windows]),
        loss=np.concatenate(losses),
    )


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


def read_measured_runs(configurations: Sequence[ConfigurationToRead], progress: Progress) -> Iterator[MeasuredRun]:
    """Yield the runs of all configurations, in order; one whose logs were copied from an earlier one is failed.

    ``progress`` counts the configurations.

    Raises:
        EvidenceError: a process that reads ended early.

    """
    duplicates = DuplicateRuns()
    for configuration, runs in zip(configurations, _runs_of_each(configurations), strict=True):
        for run in runs:
            reason = duplicates.copied(run.processes) if run.processes else ""
            if reason:
                yield _rows_of(copied_run(read_run(run.paths), reason), configuration, run.paths)
            else:
                yield run
        progress.end()


def _runs_of_each(configurations: Sequence[ConfigurationToRead]) -> Iterator[list[MeasuredRun]]:
    processes = processes_for(len(configurations))
    runs = chain.from_iterable(configuration.paths.runs() for configuration in configurations)
    # No more runs are counted than that.
    has_many_runs = next(islice(runs, WORTH_A_POOL_RUNS - 1, None), None) is not None
    if processes < 2 or not has_many_runs:
        yield from map(_runs_of, configurations)
        return
    try:
        yield from mapped_in_processes(_runs_of, configurations, processes)
    except BrokenProcessPool as error:
        raise EvidenceError(f"a process that reads runs ended early; {WHY_BROKEN}") from error


def _runs_of(configuration: ConfigurationToRead) -> list[MeasuredRun]:
    """Read the runs of a configuration; of an unreadable one there is a diagnostic."""
    runs = []
    for paths in configuration.paths.runs():
        try:
            runs.append(_rows_of(read_run(paths), configuration, paths))
        except EvidenceError as error:
            reason = str(error) if paths.run_file.exists() else "interrupted, it has no run.json"
            message = f"not counted: {reason}"
            diagnostic = Diagnostic("evidence", message, Severity.ERROR, configuration.identity, paths.repetition)
            runs.append(MeasuredRun(paths, [diagnostic]))
    return runs


def _rows_of(run: Run, configuration: ConfigurationToRead, paths: RunPaths) -> MeasuredRun:
    steadiness = steadiness_of(run, configuration.tolerance)
    return MeasuredRun(
        paths,
        diagnostics=run_diagnostics(run, steadiness),
        row=run_row(run, steadiness),
        steps=step_rows(run) if run.ranks else None,
        processes=RunProcesses.of(run),
    )
