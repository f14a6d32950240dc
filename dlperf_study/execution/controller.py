"""A whole study: one execution of the notebook per configuration and round, in order, resumed where it stopped."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.writing import naming, write_atomically
from dlperf_study.execution import planning, reuse, study_result
from dlperf_study.execution.pending import (
    Pending,
    PendingExecution,
    added_round,
    batch_searches,
    find_pending,
    measure_trials,
)
from dlperf_study.execution.progress import Progress, Watch, earlier_run_seconds, unwatched
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.supervision import locks, processes
from dlperf_study.programs.program_files import keep
from dlperf_study.records.run_record import is_completed, read
from dlperf_study.study.plan import Plan
from dlperf_study.study.plan_description import EarlierRuns, describe_reuse
from dlperf_study.training.image_datasets import decode_some, open_image_dataset

if TYPE_CHECKING:
    from dlperf_study.execution.measurement import Measurements

#: How many images of a set are decoded before the first run of a study, in two seconds.
DECODED_IMAGES = 1000
#: How often the running measurements are looked at for news and for their end.
POLL_SECONDS = 1.0

Say = Callable[[str], None]
#: Returns why a plan needs a further round; empty if it needs none.
FurtherRound = Callable[[Plan], str]


def run_study(
    plan: Plan,
    cluster: Cluster,
    say: Say,
    further_round: FurtherRound = lambda plan: "",
    watch: Watch = unwatched,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> study_result.StudyResult:
    """Measure every unmeasured run of the plan, in its order.

    A run that fails is recorded and reported, and the rest of the study runs. Then rounds are added as long as
    ``further_round`` has a reason, within the limits of the plan; and last the largest batches are searched.
    ``watch`` is called at the start, and after each execution before the next one starts. ``labels``: what progress
    calls the configurations, by identity.

    Raises BusyError where another study measures on this machine, or another controller runs this study, and
    ImageDatasetError where an image that the study reads can't be decoded.
    """
    paths = StudyPaths.of(plan.study)
    if plan.program:
        keep(plan.program, paths)
    plan.write(paths.plan_file)
    pending = find_pending(plan, cluster)
    result = study_result.StudyResult(already_measured=sum(pending.done.values()), out_of_memory=pending.out_of_memory)
    has_trials_left = any(bounds.trials_left for bounds in batch_searches(plan, cluster).values())
    if pending.executions or has_trials_left or further_round(plan):
        _decode_images(plan, cluster)
        with locks.study_lock(plan.study, cluster):
            if pending.executions:
                if any(pending.done.values()):
                    earlier_runs = EarlierRuns(earlier_run_seconds(plan), pending.done, pending.out_of_memory)
                    say(describe_reuse(plan, earlier_runs))
                for sentence in reuse.not_counted(plan, cluster, pending.done):
                    say(f"note: {sentence}")
            with Progress(pending.executions, say, watch, labels) as progress:
                _measure(plan, cluster, pending, further_round, result, progress, say)
    return result


def put_aside(plan: Plan, cluster: Cluster) -> StudyPaths | None:
    """Make the runs of a study an earlier measurement; return its paths.

    What has no completed run is kept too, but is no measurement: nothing could be compared with it. None if nothing was
    measured. The evidence moves at once, after its plan was copied: whenever this is ended, the
    evidence is complete in one of the two places.

    Raises BusyError where another study measures on this machine, or another controller runs this study.
    """
    paths = StudyPaths.of(plan.study)
    with locks.study_lock(plan.study, cluster):
        if not (paths.configurations.exists() and paths.plan_file.exists()):
            return None
        earlier = StudyPaths(paths.next_earlier() if has_result(paths) else paths.next_without_result())
        earlier.folder.mkdir(parents=True)
        write_atomically(earlier.plan_file, paths.plan_file.read_text(encoding="utf-8"))
        with naming(earlier.folder):
            paths.configurations.rename(earlier.configurations)
            for made in (paths.dataset, paths.report, paths.tables, paths.figures):
                if made.exists():
                    made.rename(earlier.folder / made.name)
    return earlier


def has_result(paths: StudyPaths) -> bool:
    """Return whether any run of a study is completed."""
    return any(is_completed(read(run)) for runs in paths.begun_runs().values() for run in runs)


def _measure(
    plan: Plan,
    cluster: Cluster,
    pending: Pending,
    further_round: FurtherRound,
    result: study_result.StudyResult,
    progress: Progress,
    say: Say,
) -> None:
    """Measure what is pending, added rounds, and the largest batches.

    Counts the runs in ``result``.
    """
    # Papermill takes a second to import: only a call that has something to measure pays for it.
    from dlperf_study.execution.measurement import Measurements

    for orphan in processes.end_orphans():
        say(f"ended what an earlier study left running: {orphan}")
    with Measurements(cluster) as measurements:
        _measure_all(pending.executions, measurements, progress, result)
        for executions in _added_rounds(plan, cluster, pending, further_round, progress, say):
            progress.add(executions)
            _measure_all(executions, measurements, progress, result)
        trials = study_result.StudyResult()

        def measure(execution: PendingExecution, further_runs: int) -> None:
            progress.add([execution])
            progress.expect(further_runs)
            _measure_all([execution], measurements, progress, trials)

        measure_trials(plan, cluster, measure, say)
    # That the trial of a batch does not fit is what the search wants to know, and no news of the study.
    result.measured += trials.measured
    result.failures += trials.failures


def _measure_all(
    executions: Sequence[PendingExecution],
    measurements: "Measurements",
    progress: Progress,
    result: study_result.StudyResult,
) -> None:
    for execution in executions:
        configuration = execution.configuration
        while measurements.must_wait(configuration):
            _follow(measurements, progress, result)
        reason = ""
        if result.keeps_failing(configuration.configuration_id):
            reason = "failed twice for the same reason"
        elif result.refusals.would_refuse(configuration):
            reason = f"the nodes rejected two configurations of {configuration.framework} for the same reason"
        if configuration.configuration_id in result.out_of_memory:
            progress.skip(execution)
        elif reason:
            progress.skip(execution)
            message = f"{execution.run_names} not started: {reason}; the same command tries again"
            progress.report(configuration.configuration_id, message)
        else:
            progress.start(execution)
            measurements.start(configuration, execution.runs)
    while measurements.running:
        _follow(measurements, progress, result)


def _added_rounds(
    plan: Plan, cluster: Cluster, pending: Pending, further_round: FurtherRound, progress: Progress, say: Say
) -> Iterator[list[PendingExecution]]:
    """Yield further rounds until precision or a limit is reached.

    At most ``repetitions`` rounds more than the plan and its target precision allow: those that repeat disturbed ones.
    """
    most = plan.rounds.most + plan.rounds.planned
    first = max(plan.rounds.planned + 1, pending.last_measured[0])
    for round_number in range(first, most + 1):
        reason = further_round(plan)
        if not reason:
            return
        executions = added_round(plan, cluster, round_number, pending.last_measured)
        if not executions:
            continue
        seconds = progress.elapsed_seconds + _seconds_of_round(plan, executions, progress)
        if plan.time_budget_minutes is not None and seconds > 60 * plan.time_budget_minutes:
            say(f"no further round, though {reason}: the time budget is used up")
            return
        say(f"round {round_number} is added: {reason}")
        yield executions
    if reason := further_round(plan):
        say(f"no further round, though {reason}: {most} rounds are the most")


def _seconds_of_round(plan: Plan, executions: Sequence[PendingExecution], progress: Progress) -> float:
    """Return how long a round will take, by earlier runs.

    A configuration that has no recorded time may take all that it is allowed to.
    """
    if (expected := progress.expected_seconds(executions)) is not None:
        return expected
    earlier = earlier_run_seconds(plan)
    seconds = 0.0
    for execution in executions:
        configuration = execution.configuration
        seconds += earlier.get(configuration.configuration_id, configuration.timeout_seconds)
    return seconds


def _follow(measurements: "Measurements", progress: "Progress", result: study_result.StudyResult) -> None:
    """Wait a moment for a measurement to end; print the news."""
    running = list(measurements.running)
    done = measurements.finish_one(POLL_SECONDS)
    for measurement in running:
        for news in measurement.news():
            progress.report(measurement.configuration.configuration_id, news)
    if done:
        summary = done.summary()
        result.add(done.configuration.configuration_id, summary)
        if summary.was_refused:
            result.refusals.add(done.configuration, summary.message)
        else:
            result.refusals.forget(done.configuration)
        progress.end(done.configuration.configuration_id, summary.message)


def _decode_images(plan: Plan, cluster: Cluster) -> None:
    """Decode some images of every set that the plan reads.

    Raises ImageDatasetError for the first that can't be decoded.
    """
    if not cluster.is_this_machine:
        return
    folders = {entry.configuration.image_dataset: cluster.image_folder(entry.configuration) for entry in plan.runnable}
    for name, folder in folders.items():
        if name != planning.NO_IMAGES:
            try:
                decode_some(open_image_dataset(Path(folder)), DECODED_IMAGES)
            except ImageDatasetError as error:
                raise ImageDatasetError(f"image_dataset {name}: {error}") from error
