"""Which executions of a plan are still to be done, which of their runs missed their round, and trials of batches.

The trials are those of a search for the largest batch: which are known, and how the next ones are measured.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlperf_study.core.paths import StudyPaths
from dlperf_study.execution import repetitions
from dlperf_study.machines.cluster import Cluster
from dlperf_study.records.run_record import RequestedRun, RunState, read
from dlperf_study.study.batch_search import BatchSearch, search, searched, trial
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import INTERLEAVED, RunStatus, Turn
from dlperf_study.study.order import PlannedExecution, planned_executions, planned_round
from dlperf_study.study.plan import Entry, Plan

#: Round and position of a run.
RoundPosition = tuple[int, int]
NOTHING_MEASURED: RoundPosition = (0, 0)
#: Measures an execution, after which at most so many runs are left.
Measure = Callable[["PendingExecution", int], None]


@dataclass(frozen=True)
class PendingExecution:
    """One execution to do: a configuration's missing runs at one turn."""

    configuration: Configuration
    runs: tuple[RequestedRun, ...]

    @property
    def repetitions(self) -> int:
        """How many of the runs are measured ones."""
        return sum(run.is_measured for run in self.runs)

    @property
    def run_names(self) -> str:
        """The runs as messages name them."""
        return repetitions.run_names(self.runs)


@dataclass(frozen=True)
class Pending:
    """The executions that a plan still needs.

    ``out_of_memory``: why configurations do not fit in memory, by identity; they need no further execution.
    ``done``: how many of its planned runs each configuration that fits has completed, by identity.
    """

    executions: list[PendingExecution]
    last_measured: RoundPosition
    out_of_memory: dict[str, str] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)


def unmeasured_runs(plan: Plan, cluster: Cluster) -> Counter[str]:
    """Return how many runs of a plan give no number."""
    purposes: Counter[str] = Counter()
    for entry in plan.runnable:
        purposes.update(repetitions.unmeasured_purposes(entry.configuration, cluster))
    return purposes


def find_pending(plan: Plan, cluster: Cluster) -> Pending:
    """Return the executions with missing runs, in the plan's order.

    A run of an early round that is missing when later ones are completed is out of its round: it saw another state of
    the machine than the runs of its round, so it gets no round. So does one of the round that was measured last, if
    its configuration was in no round before: it was added to the study after that round.
    """
    missing: dict[str, list[RequestedRun]] = {}
    out_of_memory: dict[str, str] = {}
    done: dict[str, int] = {}
    last_measured = NOTHING_MEASURED
    for configuration_id, states in _states(plan.runnable, _begun_repetitions(plan), cluster):
        missing[configuration_id] = repetitions.missing_repetitions(states)
        if reason := repetitions.out_of_memory_reason(states):
            out_of_memory[configuration_id] = reason
        else:
            done[configuration_id] = _done(plan, configuration_id, states)
        for state in states:
            if state.run not in missing[configuration_id]:
                last_measured = max(last_measured, _round_position(state.facts))
    executions: list[PendingExecution] = []
    for planned in planned_executions(plan):
        runs: list[RequestedRun] = []
        for run in missing[planned.configuration.configuration_id]:
            # NCCL's report comes before the first repetition.
            repetition = run.repetition if run.is_measured else 1
            if repetition in planned.repetitions:
                runs.append(run)
        if runs:
            turn = _turn_now(planned, last_measured)
            runs_now = tuple(replace(run, turn=turn) for run in runs)
            executions.append(PendingExecution(planned.configuration, runs_now))
    return Pending(executions, last_measured, out_of_memory, done)


def _begun_repetitions(plan: Plan) -> dict[str, list[int]]:
    begun: dict[str, list[int]] = {}
    for configuration_id, begun_runs in StudyPaths.of(plan.study).begun_runs().items():
        begun[configuration_id] = [paths.repetition for paths in begun_runs]
    return begun


def _states(
    entries: Iterable[Entry], begun: Mapping[str, Collection[int]], cluster: Cluster
) -> Iterator[tuple[str, list[RunState]]]:
    """Yield each identity with the states of its runs."""
    for entry in entries:
        configuration_id = entry.configuration.configuration_id
        requested = repetitions.requested_runs(entry.configuration, cluster, begun.get(configuration_id, ()))
        yield configuration_id, repetitions.run_states(requested)


def done_and_not_fitting(plan: Plan, cluster: Cluster) -> tuple[dict[str, int], dict[str, str]]:
    """Return completed runs and obstacles of begun configurations."""
    begun = _begun_repetitions(plan)
    entries = [entry for entry in plan.runnable if begun.get(entry.configuration.configuration_id)]
    done: dict[str, int] = {}
    not_fitting: dict[str, str] = {}
    for configuration_id, states in _states(entries, begun, cluster):
        if reason := repetitions.out_of_memory_reason(states):
            not_fitting[configuration_id] = reason
        else:
            done[configuration_id] = _done(plan, configuration_id, states)
    return done, not_fitting


def _done(plan: Plan, configuration_id: str, states: Sequence[RunState]) -> int:
    planned_runs, count = plan.by_id[configuration_id].configuration.repetitions, 0
    for state in states:
        count += state.run.is_measured and state.is_completed and state.run.repetition <= planned_runs
    return count


def added_round(
    plan: Plan, cluster: Cluster, round_number: int, last_measured: RoundPosition
) -> list[PendingExecution]:
    """Return a further round of all configurations, without completed runs.

    A round that an earlier call began is continued after its last position, without those that were added to the study
    since.
    """
    configurations = [entry.configuration for entry in plan.runnable]
    first_position = 0
    if last_measured[0] == round_number:
        configurations = [each for each in configurations if not _is_added_after(each, round_number)]
        first_position = last_measured[1]
    executions: list[PendingExecution] = []
    for planned in planned_round(configurations, plan.order_seed, round_number):
        position = first_position + len(executions) + 1
        for run in repetitions.requested_runs(planned.configuration, cluster, planned.repetitions):
            is_of_round = run.is_measured and run.repetition == round_number
            if is_of_round and not run.state().is_completed:
                run_now = replace(run, turn=Turn(INTERLEAVED, round_number, position))
                executions.append(PendingExecution(planned.configuration, (run_now,)))
    return executions


def _round_position(facts: Mapping[str, Any] | None) -> RoundPosition:
    """Return the position of a record in the rounds."""
    if facts and facts["order"] == INTERLEAVED and facts["round"] is not None:
        return facts["round"], facts["position"]
    return NOTHING_MEASURED


def _turn_now(planned: PlannedExecution, last_measured: RoundPosition) -> Turn:
    turn, last_round = planned.turn, last_measured[0]
    if turn.round is None or turn.position is None or turn.round > last_round:
        return turn
    if (turn.round, turn.position) <= last_measured or _is_added_after(planned.configuration, last_round):
        return Turn(INTERLEAVED)
    return turn


def _is_added_after(configuration: Configuration, last_round: int) -> bool:
    """Return whether a configuration was added after the last round.

    In the first round nothing tells: those that come later in it were in no round either.
    """
    rounds = [_round_position(read(paths))[0] for paths in repetitions.configuration_paths(configuration).runs()]
    return last_round > 1 and not any(0 < round_number < last_round for round_number in rounds)


def batch_searches(plan: Plan, cluster: Cluster) -> dict[str, BatchSearch]:
    """Return the searches for largest batches, by identity."""
    by_first_trial: dict[str, BatchSearch] = {}
    searches: dict[str, BatchSearch] = {}
    for configuration_id, first_trial in searched(plan).items():
        name = first_trial.configuration_id
        if name not in by_first_trial:
            by_first_trial[name] = _search(first_trial, plan.largest_batch or 0, cluster)
        searches[configuration_id] = by_first_trial[name]
    return searches


def measure_trials(plan: Plan, cluster: Cluster, measure: Measure, say: Callable[[str], None]) -> None:
    """Measure trials until all largest batches are known or fail."""
    searches = {each: _search(each, plan.largest_batch or 0, cluster) for each in searched(plan).values()}
    left = {first_trial: bounds.trials_left for first_trial, bounds in searches.items()}
    for first_trial, bounds in searches.items():
        while (batch := bounds.next_batch) is not None:
            left[first_trial] = bounds.trials_left - 1
            next_trial = trial(first_trial, batch)
            execution = PendingExecution(next_trial, tuple(repetitions.requested_runs(next_trial, cluster)))
            measure(execution, sum(left.values()))
            before, bounds = bounds, _search(first_trial, bounds.at_most, cluster)
            if bounds == before:
                left[first_trial] = 0
                say(f"    largest batch per device: not found, because the run with {batch} failed")
                break
            say(f"    largest batch per device: {bounds.description}")


def _search(first_trial: Configuration, at_most: int, cluster: Cluster) -> BatchSearch:
    """Return what trials of this code have shown."""

    def probe_outcome(batch: int) -> RunStatus | None:
        (run,) = repetitions.requested_runs(trial(first_trial, batch), cluster)
        state = run.state()
        if state.out_of_memory_reason:
            return RunStatus.OUT_OF_MEMORY
        if state.is_completed:
            return RunStatus.COMPLETED
        return None

    return search(at_most, first_trial.micro_batches, probe_outcome)
