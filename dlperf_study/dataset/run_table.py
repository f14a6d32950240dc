"""The table of runs, one row each, with the diagnostics of a run, and the table of their steps."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from dlperf_study.core.errors import Diagnostic
from dlperf_study.dataset import tables
from dlperf_study.evidence.rank_log import Window
from dlperf_study.evidence.run import Run
from dlperf_study.metrics.columns import Source, diagnosing_any_run, diagnosing_completed_run, values_of
from dlperf_study.metrics.steady_state import TOLERANCE, WindowSteadiness
from dlperf_study.metrics.throughput import slowest_training


def steadiness_of(run: Run, tolerance: float = TOLERANCE) -> WindowSteadiness | None:
    """Return whether the measured window is steady; None of a run that didn't complete.

    ``tolerance``: by how much the parts of a steady window may differ, a share of a step.
    """
    return WindowSteadiness.of(slowest_training(run).step_seconds, tolerance) if run.completed else None


def run_row(run: Run, steadiness: WindowSteadiness | None = None) -> dict[str, Any]:
    """Return the columns of one run; a run that didn't complete has no measurements.

    ``steadiness``: from ``steadiness_of``, if it is known already.
    """
    row = values_of(Source.RUN, run) | run.configuration.displayed_values()
    if not run.completed:
        return row
    steadiness = steadiness or steadiness_of(run)
    return row | values_of(Source.COMPLETED_RUN, run) | values_of(Source.STEADINESS, steadiness)


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
    counts = [window.steps for window in windows]
    names = list(dict.fromkeys(window.name for window in windows))
    losses = [window.losses if window.losses.size else np.full(window.steps, np.nan) for window in windows]
    return tables.step_rows(
        run.identity,
        run.repetition,
        rank=np.repeat(ranks, counts),
        window=(np.repeat([names.index(window.name) for window in windows], counts), names),
        step=np.concatenate(list(map(np.arange, counts))),
        seconds=np.concatenate([window.step_seconds for window in windows]),
        loss=np.concatenate(losses),
    )
