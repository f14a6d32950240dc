"""Traced runs: how the time of a gradient exchange is spent. They are never part of a throughput."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dlperf_study.arrays import Floats
from dlperf_study.dataset.run_table import run_row
from dlperf_study.dataset.study_diagnostics import SAME
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.horovod_timeline import LIBRARY, TracedRun, read_timeline
from dlperf_study.evidence.rank_log_writer import TRAINING, WARMUP
from dlperf_study.evidence.run import Run, read_run
from dlperf_study.paths import RunPaths, StudyPaths
from dlperf_study.plan.plan import Plan
from dlperf_study.study.job import Outcome

#: What must be the same for a traced run and the counted runs; the fingerprint depends on the number of steps.
SAME_AS_COUNTED = tuple(name for name in SAME if name != "fingerprint")


@dataclass(frozen=True)
class Traces:
    """The columns of the traced configurations, by identity, and diagnostics about traces."""

    columns: dict[str, dict[str, float]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def read_traces(plan: Plan, paths: StudyPaths, runs: pd.DataFrame) -> Traces:
    """Read the traced run of every configuration with ``trace_steps`` that can have one.

    ``runs`` is the table of runs: the completed ones name their library and their environment.
    """
    traces = Traces()
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    positions = completed.groupby("identity").indices
    for entry in plan.entries:
        configuration = entry.configuration
        if not configuration.trace_steps:
            continue
        counted_runs = completed.iloc[positions.get(configuration.identity, [])]
        run_paths = paths.configuration(configuration.identity).trace(configuration.traced.identity)
        # A traced run is measured after the counted ones, which say whether there is a library that can be traced.
        is_due = configuration.world_size > 1 and LIBRARY in set(counted_runs["library"])
        if run_paths.folder.exists() or is_due:
            _read_trace(configuration.identity, run_paths, counted_runs, traces)
    return traces


def _read_trace(identity: str, paths: RunPaths, counted_runs: pd.DataFrame, traces: Traces) -> None:
    """Add the columns of one traced run, or the diagnostic why it has none."""
    try:
        if not paths.folder.exists():
            raise EvidenceError("the traced run that trace_steps requests is missing")
        run = read_run(paths)
        if not run.completed:
            raise EvidenceError(f"{paths.folder}: the traced run is no evidence: {run.outcome}: {run.reason}")
        parameters = int(run.ranks[0].facts["parameters"])
        steps_before = run.ranks[0].facts.get("first_steps", 0) + run.windows(WARMUP)[0].steps
        traced_run = TracedRun(steps_before, longest_steps(run), parameters)
        timeline = read_timeline(paths.timeline, traced_run)
    except EvidenceError as error:
        traces.diagnostics.append(Diagnostic("trace", str(error), Severity.ERROR, identity))
        return
    traces.columns[identity] = {
        "traced_step_seconds": max(window.mean_seconds for window in run.windows(TRAINING)),
        "negotiation_seconds": timeline.negotiation_seconds,
        "all_reduce_seconds": timeline.all_reduce_seconds,
    }
    traces.diagnostics.extend(_different_environment(identity, run, counted_runs))


def longest_steps(run: Run) -> Floats:
    """Return, of each training step, the seconds from the first rank that begins it to the last that ends it."""
    steps = np.stack([window.step_seconds for window in run.windows(TRAINING)])
    ends = steps.cumsum(axis=1)
    longest: Floats = ends.max(axis=0) - (ends - steps).min(axis=0)
    return longest


def _different_environment(identity: str, run: Run, counted_runs: pd.DataFrame) -> Iterator[Diagnostic]:
    """Yield a warning for every difference in environment between a traced run and the counted runs."""
    row = run_row(run)
    for column in SAME_AS_COUNTED:
        values = list(counted_runs[column].dropna().unique())
        if values and row[column] not in values:
            counted_values = ", ".join(map(str, values))
            message = (
                f"the traced run was measured with {column} {row[column]}, and the counted ones with {counted_values}"
            )
            yield Diagnostic("trace", message, identity=identity)
