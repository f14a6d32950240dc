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
from dlperf_study.evidence.horovod_timeline import LIBRARY, Timeline, TracedRun, read_timeline
from dlperf_study.evidence.rank_log import TRAINING
from dlperf_study.evidence.run import Run, read_run
from dlperf_study.paths import RunPaths, StudyPaths
from dlperf_study.plan.plan import Plan
from dlperf_study.study.configuration import Configuration
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
    for configuration in (entry.configuration for entry in plan.entries if entry.configuration.trace_steps):
        counted = completed[completed["identity"] == configuration.identity]
        run_paths = paths.configuration(configuration.identity).trace(configuration.traced.identity)
        if run_paths.folder.exists() or _is_due(configuration, counted):
            _read(configuration, run_paths, counted, traces)
    return traces


def _is_due(configuration: Configuration, counted: pd.DataFrame) -> bool:
    """Return whether a configuration must have a traced run; it comes after those that are counted."""
    return configuration.world_size > 1 and LIBRARY in set(counted["library"])


def _read(configuration: Configuration, paths: RunPaths, counted: pd.DataFrame, traces: Traces) -> None:
    identity = configuration.identity
    try:
        run = _traced_run(paths)
        traces.columns[identity] = _columns(run, _timeline(run, paths))
    except EvidenceError as error:
        traces.diagnostics.append(Diagnostic("trace", str(error), Severity.ERROR, identity))
    else:
        traces.diagnostics.extend(_other_environment(identity, run, counted))


def _traced_run(paths: RunPaths) -> Run:
    if not paths.folder.exists():
        raise EvidenceError("the traced run that trace_steps asks for is missing")
    run = read_run(paths)
    if not run.completed:
        raise EvidenceError(f"{paths.folder}: the traced run is no evidence: {run.outcome}: {run.reason}")
    return run


def _timeline(run: Run, paths: RunPaths) -> Timeline:
    parameters = int(run.ranks[0].facts["parameters"])
    return read_timeline(paths.timeline, TracedRun(run.configuration.warmup_steps, longest_steps(run), parameters))


def longest_steps(run: Run) -> Floats:
    """Return, of each training step, the seconds from the first rank that begins it to the last that ends it."""
    steps = np.stack([window.step_seconds for window in run.windows(TRAINING)])
    ends = steps.cumsum(axis=1)
    longest: Floats = ends.max(axis=0) - (ends - steps).min(axis=0)
    return longest


def _columns(run: Run, timeline: Timeline) -> dict[str, float]:
    return {
        "traced_step_seconds": max(window.mean_seconds for window in run.windows(TRAINING)),
        "negotiation_seconds": timeline.negotiation_seconds,
        "all_reduce_seconds": timeline.all_reduce_seconds,
    }


def _other_environment(identity: str, run: Run, counted: pd.DataFrame) -> Iterator[Diagnostic]:
    """Yield a warning for every difference in environment between a traced run and the counted runs."""
    row = run_row(run)
    for column in SAME_AS_COUNTED:
        values = list(counted[column].dropna().unique())
        if values and row[column] not in values:
            found = f"{row[column]}, and the counted ones with {', '.join(map(str, values))}"
            yield Diagnostic("trace", f"the traced run was measured with {column} {found}", identity=identity)
