"""A whole study: one execution of the notebook per configuration, in order, resumed where it stopped."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlperf_study.execution.clusters import load_cluster
from dlperf_study.execution.gate import study_lock
from dlperf_study.execution.progress import Progress
from dlperf_study.execution.run import missing_repetitions, trace_is_missing
from dlperf_study.execution.support import unsupported_here
from dlperf_study.paths import StudyPaths
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan, build_plan
from dlperf_study.study.study_file import load_study
from dlperf_study.supervision.processes import end_survivors

if TYPE_CHECKING:
    from dlperf_study.execution.measurement import Measurements

#: How often the queue of a cluster is looked at for news.
LOOK_SECONDS = 1.0

Say = Callable[[str], None]


@dataclass
class Result:
    """What a call measured: numbers of runs, and the configurations with a run that did not complete."""

    measured: int = 0
    found: int = 0
    failures: list[str] = field(default_factory=list)


def make_plan(study: str, cluster: str, quick: bool) -> tuple[Plan, Cluster]:
    """Return the plan of a study on a cluster, and that cluster."""
    place = load_cluster(cluster)
    asked = load_study(study, quick)
    return build_plan(asked, place, lambda c: unsupported_here(c, place, asked.source)), place


def run_study(plan: Plan, cluster: Cluster, say: Say) -> Result:
    """Measure every run of the plan that is not measured yet.

    A configuration that fails is recorded and reported, and the rest of the study runs.

    Raises:
        BusyError: another study measures on this machine, or this study is driven already.

    """
    plan.write(StudyPaths.of(plan.study).plan_file)
    configurations = [entry.configuration for entry in plan.runnable]
    missing = {c.identity: missing_repetitions(c, cluster) for c in configurations}
    result = Result(found=sum(c.repeats - len(missing[c.identity]) for c in configurations))
    waiting = [c for c in configurations if missing[c.identity] or trace_is_missing(c, cluster)]
    if waiting:
        with study_lock(plan.study, cluster):
            _measure(waiting, missing, cluster, result, say)
    return result


def _measure(
    waiting: list[Configuration], missing: dict[str, list[int]], cluster: Cluster, result: Result, say: Say
) -> None:
    # Papermill takes a second to import: only a call that has something to measure pays for it.
    from dlperf_study.execution.measurement import Measurements

    for survivor in end_survivors():
        say(f"ended what an earlier study left running: {survivor}")
    runs = {c.identity: len(missing[c.identity]) + trace_is_missing(c, cluster) for c in waiting}
    progress = Progress(runs, say)
    with Measurements(cluster) as measurements:
        for configuration in waiting:
            progress.starts(configuration.identity)
            measurements.start(configuration, missing[configuration.identity])
            while measurements.are_enough:
                _follow(measurements, progress, result)
        while measurements.running:
            _follow(measurements, progress, result)


def _follow(measurements: "Measurements", progress: Progress, result: Result) -> None:
    """Wait a moment for one to end; say what is new."""
    running = list(measurements.running)
    done = measurements.finish_one(LOOK_SECONDS)
    for measurement in running:
        for news in measurement.news():
            progress.says(measurement.configuration.identity, news)
    if done:
        verdict = done.verdict()
        result.measured += verdict.completed
        if verdict.is_failure:
            result.failures.append(f"{done.configuration.identity}: {verdict.words}")
        progress.ended(done.configuration.identity, verdict.words)


def execute(configuration: Configuration, cluster: Cluster, repetitions: list[int]) -> None:
    """Execute the notebook for one configuration, in its own process, and leave nothing of it behind."""
    from dlperf_study.execution.measurement import Measurements

    with Measurements(cluster) as measurements:
        measurements.start(configuration, repetitions)
        while not measurements.finish_one(LOOK_SECONDS):
            pass
