"""The largest batch of each configuration of a plan, from the evidence of its trials."""

from dataclasses import dataclass, field

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.run import Run, read_run
from dlperf_study.paths import StudyPaths
from dlperf_study.plan.batch_search import BatchSearch, search, searched, trial
from dlperf_study.plan.plan import Plan
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome


@dataclass(frozen=True)
class LargestBatches:
    """Columns by identity of a configuration, the identities of the trials that were read, and diagnostics."""

    columns: dict[str, dict[str, int]] = field(default_factory=dict)
    trials: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def read_largest_batches(plan: Plan, paths: StudyPaths) -> LargestBatches:
    """Read the trials of a plan. A search that is not over gives no number."""
    batches = LargestBatches()
    trials: dict[str, _Trials] = {}
    for identity, first_trial in searched(plan).items():
        if first_trial.identity not in trials:
            trials[first_trial.identity] = _Trials(first_trial, paths)
        of_configuration = trials[first_trial.identity]
        bounds = of_configuration.search(plan.largest_batch or 0)
        batches.trials.update(of_configuration.identities)
        if bounds.next_batch is None:
            batches.columns[identity] = {"largest_batch": bounds.fitting, "batch_trials": bounds.trials}
            if bounds.too_large is not None:
                batches.columns[identity]["too_large_batch"] = bounds.too_large
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
        return search(at_most, self._outcome)

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
