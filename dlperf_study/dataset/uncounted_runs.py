"""What runs that are never counted tell: NCCL's reports and the trials of the largest batch.

They are never part of a throughput.
"""

from dataclasses import dataclass, field
from typing import Any

from dlperf_study.core.errors import Diagnostic, EvidenceError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.metrics.columns import Source, compute_values
from dlperf_study.records.nccl_report import link_contradictions, read_nccl_report
from dlperf_study.records.run import Run, read_run
from dlperf_study.study.batch_search import BatchSearch, search, searched, trial
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome
from dlperf_study.study.plan import Plan


@dataclass(frozen=True)
class UncountedRuns:
    """Columns by identity, diagnostics, and the trials' identities."""

    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    identities: set[str] = field(default_factory=set)


def read_nccl_reports(plan: Plan, paths: StudyPaths) -> UncountedRuns:
    """Read the NCCL report of every configuration that has one."""
    reports = UncountedRuns()
    for entry in plan.entries:
        configuration = entry.configuration
        run_paths = paths.configuration(configuration.identity).nccl_report(configuration.reported.identity)
        if not run_paths.folder.exists():
            continue
        try:
            run = read_run(run_paths)
            report = read_nccl_report(run_paths)
        except EvidenceError as error:
            diagnostic = Diagnostic("nccl_transports", str(error), identity=configuration.identity)
            reports.diagnostics.append(diagnostic)
            continue
        reports.columns[configuration.identity] = compute_values(Source.NCCL_REPORT, report)
        for message in link_contradictions(report, run.facts["cluster"]["link"], run.configuration.nodes):
            diagnostic = Diagnostic("nccl_transports", message, identity=configuration.identity)
            reports.diagnostics.append(diagnostic)
    return reports


def read_largest_batches(plan: Plan, paths: StudyPaths) -> UncountedRuns:
    """Read the trials of a plan; unfinished searches give no number."""
    batches = UncountedRuns()
    trials: dict[str, _Trials] = {}
    for identity, first_trial in searched(plan).items():
        if first_trial.identity not in trials:
            trials[first_trial.identity] = _Trials(first_trial, paths)
        of_configuration = trials[first_trial.identity]
        bounds = of_configuration.search(plan.largest_batch or 0)
        batches.identities.update(of_configuration.identities)
        if bounds.next_batch is None:
            batches.columns[identity] = compute_values(Source.BATCH_SEARCH, bounds)
        else:
            message = "; ".join(filter(None, (f"not found yet: {bounds.description}", of_configuration.problem)))
            batches.diagnostics.append(Diagnostic("largest_batch", message, identity=identity))
    return batches


class _Trials:
    """The trials of one search; ``problem``: why the last shows nothing."""

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
        if run.facts["code"] == self._code:
            return run.outcome
        return None

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
