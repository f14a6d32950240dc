"""A whole study: one execution of the notebook per configuration and round, in order, resumed where it stopped."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlperf_study import frameworks
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.errors import StudyFileError
from dlperf_study.execution.batch_trials import batch_searches, measure_trials
from dlperf_study.execution.gate import study_lock
from dlperf_study.execution.pending import Pending, PendingExecution, added_round, pending_of
from dlperf_study.execution.progress import Progress, earlier_run_seconds
from dlperf_study.execution.refusals import Refusals
from dlperf_study.execution.repetitions import missing_runs
from dlperf_study.execution.support import decode_images, load_cluster, unknown_names, unsupported_here
from dlperf_study.paths import StudyPaths
from dlperf_study.plan.plan import Plan, build_plan
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.strict_yaml import display_path, find_file, read_mapping
from dlperf_study.study.study import Study
from dlperf_study.study.study_file import load_study
from dlperf_study.supervision.processes import end_survivors
from dlperf_study.wording import counted

if TYPE_CHECKING:
    from dlperf_study.execution.measurement import Measurements, MeasurementSummary

#: How often the running measurements are looked at for news and for their end.
POLL_SECONDS = 1.0

Say = Callable[[str], None]
#: Returns the identities of the configurations that need a further round for the precision of the plan.
TooWide = Callable[[Plan], Collection[str]]


def no_precision(plan: Plan) -> Collection[str]:
    """Return no configuration: none needs more rounds than the plan has."""
    return ()


@dataclass
class StudyResult:
    """What a call did: how many runs it measured, how many were measured before, and the executions that failed.

    ``out_of_memory``: why configurations do not fit in memory, by identity, also those found by earlier calls.
    ``failure_reasons``: why executions failed, by the identity of a configuration, since it last completed a run.
    ``refusals``: those that failed before anything started.
    """

    measured: int = 0
    already_measured: int = 0
    failures: list[str] = field(default_factory=list)
    out_of_memory: dict[str, str] = field(default_factory=dict)
    failure_reasons: dict[str, list[str]] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)

    def add(self, identity: str, summary: "MeasurementSummary") -> None:
        """Count what an execution of a configuration did."""
        self.measured += summary.completed
        if summary.out_of_memory:
            self.measured += 1
            self.out_of_memory[identity] = summary.out_of_memory
        reasons = self.failure_reasons.setdefault(identity, [])
        if summary.completed:
            reasons.clear()
        if summary.is_failure:
            self.failures.append(f"{identity}: {summary.message}")
            reasons.append(re.sub(r"\d+", "#", summary.message))

    def keeps_failing(self, identity: str) -> bool:
        """Return whether two executions of a configuration failed for the same reason, and none since completed a run.

        Numbers in a reason, as those of runs, processes and ports, may differ.
        """
        last_two = self.failure_reasons.get(identity, [])[-2:]
        return len(last_two) == 2 and len(set(last_two)) == 1


def make_plan(study_name: str, cluster_name: str, quick: bool) -> tuple[Plan, Cluster]:
    """Return the plan of a study on a cluster, and that cluster.

    Raises StudyFileError for any error in either file, with every misspelt name of the study file.
    """
    try:
        study = load_study(study_name, quick)
        cluster = cluster_for([study], cluster_name)
        return plan_study(study, cluster), cluster
    except StudyFileError as error:
        raise StudyFileError("\n".join([str(error), *_other_unknown_names(study_name, str(error))])) from error


def _other_unknown_names(study_name: str, message: str) -> list[str]:
    """Return what is misspelt in a study file besides what a message names, if it can be read."""
    try:
        path = find_file("study", study_name)
        content = read_mapping(path)
    except StudyFileError:
        return []
    # The same name has another key in the messages about the quick variant.
    messages = unknown_names(content, display_path(path))
    return [line for line in messages if line.partition(" is ")[2] not in message]


def cluster_for(studies: Sequence[Study], cluster_name: str) -> Cluster:
    """Return the cluster on which these studies are measured; its device ``auto`` depends on their frameworks."""
    names: dict[str, None] = {}
    for study in studies:
        names |= dict.fromkeys(str(point["framework"]) for point in study.points)
    # The plan refuses a name that doesn't exist, and says where it is.
    return load_cluster(cluster_name, [name for name in names if name in frameworks.names()])


def plan_study(study: Study, cluster: Cluster) -> Plan:
    """Return the plan of a study on a cluster."""

    def unsupported(configuration: Configuration) -> str | None:
        return unsupported_here(configuration, cluster, study.locate)

    return build_plan(study, cluster, unsupported)


def run_study(plan: Plan, cluster: Cluster, say: Say, too_wide: TooWide = no_precision) -> StudyResult:
    """Measure every run of the plan that is not measured yet, in the plan's order.

    A run that fails is recorded and reported, and the rest of the study runs. Then rounds are added as long as
    ``too_wide`` names configurations, within the limits of the plan; and last the largest batches are searched.

    Raises:
        BusyError: another study measures on this machine, or another driver runs this study.
        ImageSetError: an image that the study reads can't be decoded.

    """
    plan.write(StudyPaths.of(plan.study).plan_file)
    pending = pending_of(plan, cluster)
    fitting = [
        entry.configuration for entry in plan.runnable if entry.configuration.identity not in pending.out_of_memory
    ]
    requested = sum(configuration.repeats for configuration in fitting)
    already_measured = requested - sum(execution.repetitions for execution in pending.executions)
    result = StudyResult(already_measured=already_measured, out_of_memory=pending.out_of_memory)
    has_trials_left = any(bounds.trials_left for bounds in batch_searches(plan, cluster).values())
    if pending.executions or has_trials_left or too_wide(plan):
        decode_images(plan, cluster)
        with study_lock(plan.study, cluster):
            _measure(plan, cluster, pending, too_wide, result, say)
    return result


def execute(configuration: Configuration, cluster: Cluster) -> None:
    """Execute the notebook for one configuration, in a separate process, and leave none of its processes running."""
    from dlperf_study.execution.measurement import Measurements

    with Measurements(cluster) as measurements:
        measurements.start(configuration, missing_runs(configuration, cluster))
        while not measurements.finish_one(POLL_SECONDS):
            pass


def _measure(plan: Plan, cluster: Cluster, pending: Pending, too_wide: TooWide, result: StudyResult, say: Say) -> None:
    """Measure what is pending, the rounds that the precision asks for, and the largest batches.

    Counts the runs in ``result``.
    """
    # Papermill takes a second to import: only a call that has something to measure pays for it.
    from dlperf_study.execution.measurement import Measurements

    for survivor in end_survivors():
        say(f"ended what an earlier study left running: {survivor}")
    with Progress(pending.executions, say) as progress, Measurements(cluster) as measurements:
        _measure_all(pending.executions, measurements, progress, result)
        for executions in _added_rounds(plan, cluster, pending, too_wide, progress, say):
            progress.add(executions)
            _measure_all(executions, measurements, progress, result)
        trials = StudyResult()

        def measure(execution: PendingExecution, further_runs: int) -> None:
            progress.add([execution])
            progress.expect(further_runs)
            _measure_all([execution], measurements, progress, trials)

        measure_trials(plan, cluster, measure, say)
    # That the trial of a batch does not fit is what the search wants to know, and no news of the study.
    result.measured += trials.measured
    result.failures += trials.failures


def _measure_all(
    executions: Sequence[PendingExecution], measurements: "Measurements", progress: Progress, result: StudyResult
) -> None:
    """Measure the runs of these executions, and wait for the end of all."""
    for execution in executions:
        while measurements.must_wait(execution.configuration):
            _follow(measurements, progress, result)
        if execution.configuration.identity in result.out_of_memory:
            progress.skip(execution)
            continue
        if result.keeps_failing(execution.configuration.identity):
            progress.skip(execution)
            reason = "failed twice for the same reason; the same command tries again"
            progress.report(execution.configuration.identity, f"{execution.run_names} not started: {reason}")
            continue
        if result.refusals.would_refuse(execution.configuration):
            progress.skip(execution)
            refused = f"the nodes refused two configurations of {execution.configuration.framework} for the same reason"
            reason = f"{refused}; the same command tries again"
            progress.report(execution.configuration.identity, f"{execution.run_names} not started: {reason}")
            continue
        progress.start(execution)
        measurements.start(execution.configuration, execution.runs)
    while measurements.running:
        _follow(measurements, progress, result)


def _added_rounds(
    plan: Plan, cluster: Cluster, pending: Pending, too_wide: TooWide, progress: Progress, say: Say
) -> Iterator[list[PendingExecution]]:
    """Yield rounds of the configurations with an interval that is too wide, until there is none or a limit is reached.

    What is too wide is decided anew after each round.
    """
    planned_rounds = max(entry.configuration.repeats for entry in plan.runnable)
    first = max(planned_rounds + 1, pending.last_measured[0])
    for round_number in range(first, (plan.max_repeats or 0) + 1):
        identities = too_wide(plan)
        if not identities:
            return
        executions = added_round(plan, cluster, identities, round_number, pending.last_measured)
        if not executions:
            continue
        seconds = progress.elapsed_seconds + _seconds_of_round(plan, executions, progress)
        if plan.time_budget_minutes is not None and seconds > 60 * plan.time_budget_minutes:
            configurations = counted(len(identities), "configuration")
            say(f"no further round: {configurations} too imprecise, but the time budget is used up")
            return
        configurations = counted(len(executions), "configuration")
        say(f"round {round_number} is added for {configurations}, because intervals are too wide")
        yield executions
    if identities := too_wide(plan):
        configurations = counted(len(identities), "configuration")
        say(f"after {plan.max_repeats} rounds {configurations} too imprecise; the report says what more would take")


def _seconds_of_round(plan: Plan, executions: Sequence[PendingExecution], progress: Progress) -> float:
    """Return how long a round will take, by the runs of this call or, before its first, by those of earlier calls.

    A configuration that has no recorded time may take all that it is allowed to.
    """
    if (expected := progress.expected_seconds(executions)) is not None:
        return expected
    earlier = earlier_run_seconds(plan)
    seconds = 0.0
    for execution in executions:
        configuration = execution.configuration
        seconds += earlier.get(configuration.identity, configuration.timeout_seconds)
    return seconds


def _follow(measurements: "Measurements", progress: "Progress", result: StudyResult) -> None:
    """Wait a moment for a measurement to end; print the news of all."""
    running = list(measurements.running)
    done = measurements.finish_one(POLL_SECONDS)
    for measurement in running:
        for news in measurement.news():
            progress.report(measurement.configuration.identity, news)
    if done:
        summary = done.summary()
        result.add(done.configuration.identity, summary)
        if summary.was_refused:
            result.refusals.add(done.configuration, summary.message)
        else:
            result.refusals.forget(done.configuration)
        progress.end(done.configuration.identity, summary.message)
