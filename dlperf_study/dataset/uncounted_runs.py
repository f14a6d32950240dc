"""What runs that are never counted tell: traced runs, NCCL's reports and the trials of the largest batch.

They are never part of a throughput.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import Diagnostic, EvidenceError, Severity
from dlperf_study.core.paths import RunPaths, StudyPaths
from dlperf_study.dataset.run_table import run_row
from dlperf_study.evidence.horovod_timeline import LIBRARY, TracedRun, read_timeline
from dlperf_study.evidence.lines import TRAINING, WARMUP
from dlperf_study.evidence.nccl_report import link_contradictions, read_nccl_report
from dlperf_study.evidence.run import Run, read_run
from dlperf_study.metrics.columns import COLUMNS, Source, values_of
from dlperf_study.metrics.outcome import completed_of
from dlperf_study.study.batch_search import BatchSearch, search, searched, trial
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome
from dlperf_study.study.plan import Plan


@dataclass(frozen=True)
class UncountedRuns:
    """What runs of one kind tell: columns by identity of a configuration, and diagnostics.

    ``identities``: of the trials that were read, which are configurations of their own.
    """

    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    identities: set[str] = field(default_factory=set)


def read_traces(plan: Plan, paths: StudyPaths, runs: pd.DataFrame) -> UncountedRuns:
    """Read the traced run of every configuration with ``trace_steps`` that can have one.

    ``runs`` is the table of runs: the completed ones name their library and their environment.
    """
    traces = UncountedRuns()
    traced = [entry.configuration for entry in plan.entries if entry.configuration.trace_steps]
    if not traced:
        return traces
    completed = completed_of(runs)
    positions = completed.groupby("identity").indices
    for configuration in traced:
        counted_runs = completed.iloc[positions.get(configuration.identity, [])]
        run_paths = paths.configuration(configuration.identity).trace(configuration.traced.identity)
        # A traced run is measured after the counted ones, which say whether there is a library that can be traced.
        is_due = configuration.world_size > 1 and LIBRARY in set(counted_runs["library"])
        if run_paths.folder.exists() or is_due:
            _read_trace(configuration.identity, run_paths, counted_runs, traces)
    return traces


def _read_trace(identity: str, paths: RunPaths, counted_runs: pd.DataFrame, traces: UncountedRuns) -> None:
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
    traces.columns[identity] = values_of(Source.TRACE, (run, timeline))
    traces.diagnostics.extend(_different_environment(identity, run, counted_runs))


def longest_steps(run: Run) -> Floats:
    """Return, of each training step, the seconds from the first rank that begins it to the last that ends it."""
    steps = np.stack(run.step_seconds(TRAINING))
    ends = steps.cumsum(axis=1)
    longest: Floats = ends.max(axis=0) - (ends - steps).min(axis=0)
    return longest


def _different_environment(identity: str, run: Run, counted_runs: pd.DataFrame) -> Iterator[Diagnostic]:
    """Yield a warning for every difference in environment between a traced run and the counted runs."""
    row = run_row(run)
    # The fingerprint depends on the number of steps.
    for column in (name for name, metric in COLUMNS.items() if metric.same_within and name != "fingerprint"):
        values = list(counted_runs[column].dropna().unique())
        if values and row[column] not in values:
            counted_values = ", ".join(map(str, values))
            message = (
                f"the traced run was measured with {column} {row[column]}, and the counted ones with {counted_values}"
            )
            yield Diagnostic("trace", message, identity=identity)


def read_nccl_reports(plan: Plan, paths: StudyPaths) -> UncountedRuns:
    """Read the report of every configuration that has one: those of several GPUs that average gradients."""
    reports = UncountedRuns()
    for entry in plan.entries:
        configuration = entry.configuration
        run_paths = paths.configuration(configuration.identity).nccl_report(configuration.reported.identity)
        if run_paths.folder.exists():
            _read_report(configuration.identity, run_paths, reports)
    return reports


def _read_report(identity: str, paths: RunPaths, reports: UncountedRuns) -> None:
    """Add the columns of one report, or the diagnostic why there are none."""
    try:
        run = read_run(paths)
        report = read_nccl_report(paths)
    except EvidenceError as error:
        reports.diagnostics.append(Diagnostic("nccl_transports", str(error), Severity.WARNING, identity))
        return
    reports.columns[identity] = values_of(Source.NCCL_REPORT, report)
    for message in link_contradictions(report, run.facts["cluster"]["link"], run.configuration.nodes):
        reports.diagnostics.append(Diagnostic("nccl_transports", message, identity=identity))


def read_largest_batches(plan: Plan, paths: StudyPaths) -> UncountedRuns:
    """Read the trials of a plan. A search that is not over gives no number."""
    batches = UncountedRuns()
    trials: dict[str, _Trials] = {}
    for identity, first_trial in searched(plan).items():
        if first_trial.identity not in trials:
            trials[first_trial.identity] = _Trials(first_trial, paths)
        of_configuration = trials[first_trial.identity]
        bounds = of_configuration.search(plan.largest_batch or 0)
        batches.identities.update(of_configuration.identities)
        if bounds.next_batch is None:
            batches.columns[identity] = values_of(Source.BATCH_SEARCH, bounds)
        else:
            message = "; ".join(filter(None, (f"not found yet: {bounds.description}", of_configuration.problem)))
            batches.diagnostics.append(Diagnostic("largest_batch", message, identity=identity))
    return batches


class _Trials:
    """The trials of one search; those of other measuring code than the first one's are not its own.

    ``problem``: why the last one that was read shows nothing; empty where it does.
    """

    def __init__(self, first_trial: Configuration, paths: StudyPaths) -> None:
        self._first_trial, self._paths = first_trial, paths
        self._code = self.problem = ""
        self.identities: set[str] = set()

    def search(self, at_most: int) -> BatchSearch:
        """Return what they have shown."""
        return search(at_most, self._first_trial.micro_batches, self._outcome)

    def _outcome(self, batch: int) -> Outcome | None:
        run = self._read(trial(self._first_trial, batch).identity)
        if run is None:
            return None
        self._code = self._code or run.facts["code"]
        if run.outcome not in (Outcome.COMPLETED, Outcome.OUT_OF_MEMORY):
            self.problem = f"the trial of {batch}: {run.outcome}: {run.reason}"
        return run.outcome if run.facts["code"] == self._code else None

    def _read(self, identity: str) -> Run | None:
        run_paths = self._paths.configuration(identity).run(1)
        if not run_paths.run_file.exists():
            return None
        self.identities.add(identity)
        try:
            return read_run(run_paths)
        except EvidenceError as error:
            self.problem = str(error)
            return None
