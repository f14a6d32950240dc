"""What runs that are never counted tell: NCCL's reports and the trials of the largest batch.

They are never part of a throughput.
"""

from dataclasses import dataclass, field
from typing import Any

from dlperf_study.core.errors import Diagnostic, RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.metrics.columns import Source, compute_values
from dlperf_study.records.nccl_report import link_contradictions, read_nccl_report
from dlperf_study.records.run import read_run
from dlperf_study.study.batch_search import search, searched, trial
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import RunStatus
from dlperf_study.study.plan import Plan


@dataclass(frozen=True)
class UncountedRuns:
    """Columns by identity, diagnostics, and the trials' identities."""

    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    configuration_ids: set[str] = field(default_factory=set)


def read_nccl_reports(plan: Plan, paths: StudyPaths) -> UncountedRuns:
    """Read the NCCL report of every configuration that has one."""
    reports = UncountedRuns()
    for entry in plan.entries:
        configuration = entry.configuration
        run_paths = paths.configuration(configuration.configuration_id).nccl_report(
            configuration.reported.configuration_id
        )
        if not run_paths.folder.exists():
            continue
        try:
            run = read_run(run_paths)
            report = read_nccl_report(run_paths)
            messages = link_contradictions(report, run.facts["cluster"]["interconnect"], run.configuration.nodes)
            reports.columns[configuration.configuration_id] = compute_values(Source.NCCL_REPORT, report)
        except RecordError as error:
            messages = iter([str(error)])
        for message in messages:
            reports.diagnostics.append(
                Diagnostic("nccl_transports", message, configuration_id=configuration.configuration_id)
            )
    return reports


def read_largest_batches(plan: Plan, paths: StudyPaths) -> UncountedRuns:
    """Read the trials of a plan; unfinished searches give no number."""
    batches = UncountedRuns()
    trials: dict[str, _Trials] = {}
    for configuration_id, first_trial in searched(plan).items():
        of_configuration = trials.setdefault(
            first_trial.configuration_id, _Trials(first_trial, paths, batches.configuration_ids)
        )
        bounds = search(plan.largest_batch or 0, first_trial.micro_batches, of_configuration.status)
        if bounds.next_batch is None:
            batches.columns[configuration_id] = compute_values(Source.BATCH_SEARCH, bounds)
        else:
            message = "; ".join(filter(None, (f"not found yet: {bounds.description}", of_configuration.problem)))
            batches.diagnostics.append(Diagnostic("largest_batch", message, configuration_id=configuration_id))
    return batches


class _Trials:
    """The trials of one search; ``problem``: why the last shows nothing."""

    def __init__(self, first_trial: Configuration, paths: StudyPaths, configuration_ids: set[str]) -> None:
        self._first_trial, self._paths, self._identities = first_trial, paths, configuration_ids
        self._code = self.problem = ""

    def status(self, batch: int) -> RunStatus | None:
        """Return how the trial of a batch ended; None if it shows nothing."""
        configuration_id = trial(self._first_trial, batch).configuration_id
        run_paths = self._paths.configuration(configuration_id).run(1)
        if not run_paths.run_file.exists():
            return None
        self._identities.add(configuration_id)
        try:
            run = read_run(run_paths)
        except RecordError as error:
            self.problem = str(error)
            return None
        self._code = self._code or run.facts["code"]
        if run.status not in (RunStatus.COMPLETED, RunStatus.OUT_OF_MEMORY):
            self.problem = f"the run with batch {batch}: {run.status}: {run.reason}"
        if run.facts["code"] != self._code:
            return None
        return run.status
