"""The trials of a search for the largest batch: which are known, and how the next ones are measured."""

from collections.abc import Callable

from dlperf_study.execution.pending import PendingExecution
from dlperf_study.execution.repetitions import requested_runs
from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.batch_search import BatchSearch, search, searched, trial
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome
from dlperf_study.study.plan import Plan

#: Measures an execution, after which at most so many runs are left.
Measure = Callable[[PendingExecution, int], None]


def batch_searches(plan: Plan, cluster: Cluster) -> dict[str, BatchSearch]:
    """Return what trials of this code have shown of each configuration that can run, by identity."""
    by_first_trial: dict[str, BatchSearch] = {}
    searches: dict[str, BatchSearch] = {}
    for identity, first_trial in searched(plan).items():
        name = first_trial.identity
        if name not in by_first_trial:
            by_first_trial[name] = _search(first_trial, plan.largest_batch or 0, cluster)
        searches[identity] = by_first_trial[name]
    return searches


def measure_trials(plan: Plan, cluster: Cluster, measure: Measure, say: Callable[[str], None]) -> None:
    """Measure trials until the largest batch of every configuration is known, or one of its trials fails."""
    searches = {each: _search(each, plan.largest_batch or 0, cluster) for each in searched(plan).values()}
    left = {first_trial: bounds.trials_left for first_trial, bounds in searches.items()}
    for first_trial, bounds in searches.items():
        while (batch := bounds.next_batch) is not None:
            left[first_trial] = bounds.trials_left - 1
            next_trial = trial(first_trial, batch)
            execution = PendingExecution(next_trial, tuple(requested_runs(next_trial, cluster)))
            measure(execution, sum(left.values()))
            before, bounds = bounds, _search(first_trial, bounds.at_most, cluster)
            if bounds == before:
                left[first_trial] = 0
                say(f"    largest batch per device: not found, because the trial of {batch} failed")
                break
            say(f"    largest batch per device: {bounds.description}")


def _search(first_trial: Configuration, at_most: int, cluster: Cluster) -> BatchSearch:
    """Return what trials of this code have shown."""

    def outcome_of(batch: int) -> Outcome | None:
        (run,) = requested_runs(trial(first_trial, batch), cluster)
        state = run.state()
        if state.out_of_memory_reason:
            return Outcome.OUT_OF_MEMORY
        return Outcome.COMPLETED if state.is_completed else None

    return search(at_most, first_trial.micro_batches, outcome_of)
