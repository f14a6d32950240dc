"""What runs that are never counted tell: NCCL's reports and the trials of the largest batch.

They are never part of a throughput.
"""

from dataclasses import dataclass, field
from typing import Any

from dlperf_study.core.errors import Diagnostic, EvidenceError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.metrics.columns import Source, compute_values
from dlperf_study.records.nccl_report import link_contradictions, read_nccl_report
from dlperf_study.records.run import read_run
from dlperf_study.study.batch_search import search, searched, trial
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
            messages = link_contradictions(report, run.facts["cluster"]["link"], run.configuration.nodes)
            reports.columns[configuration.identity] = compute_values(Source.NCCL_REPORT, report)
        except EvidenceError as error:
            messages = iter([str(error)])
        for message in messages:
            reports.diagnostics.append(Diagnostic("nccl_transports", message, identity=configuration.identity))
    return reports


def read_largest_batches(plan: Plan, paths: StudyPaths) -> UncountedRuns:
    """Read the trials of a plan; unfinished searches give no number."""
    batches = UncountedRuns()
    trials: dict[str, _Trials] = {}
    for identity, first_trial in searched(plan).items():
        of_configuration = trials.setdefault(first_trial.identity, _Trials(first_trial, paths, batches.identities))
        bounds = search(plan.largest_batch or 0, first_trial.micro_batches, of_configuration.outcome)
        if bounds.next_batch is None:
            batches.columns[identity] = compute_values(Source.BATCH_SEARCH, bounds)
        else:
            message = "; ".join(filter(None, (f"not found yet: {bounds.description}", of_configuration.problem)))
            batches.diagnostics.append(Diagnostic("largest_batch", message, identity=identity))
    return batches


class _Trials:
    """The trials of one search; ``problem``: why the last shows nothing."""

    def __init__(self, first_trial: Configuration, paths: StudyPaths, identities: set[str]) -> None:
        self._first_trial, self._paths, self._identities = first_trial, paths, identities
        self._code = self.problem = ""

    def outcome(self, batch: int) -> Outcome | None:
        """Return how the trial of a batch ended; None if it shows nothing."""
        identity = trial(self._first_trial, batch).identity
        run_paths = self._paths.configuration(identity).run(1)
        if not run_paths.run_file.exists():
            return None
        self._identities.add(identity)
        try:
            run = read_run(run_paths)
        except EvidenceError as error:
            self.problem = str(error)
            return None
        self._code = self._code or run.facts["code"]
        if run.outcome not in (Outcome.COMPLETED, Outcome.OUT_OF_MEMORY):
            self.problem = f"the trial of {batch}: {run.outcome}: {run.reason}"
        if run.facts["code"] != self._code:
            return None
        return run.outcome
