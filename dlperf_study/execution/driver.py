"""A whole study: one execution of the notebook per configuration, in order, resumed where it stopped."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.evidence.run_record import RequestedRun
from dlperf_study.execution.gate import study_lock
from dlperf_study.execution.repetitions import missing_runs
from dlperf_study.execution.support import load_cluster, unsupported_here
from dlperf_study.paths import StudyPaths
from dlperf_study.plan.plan import Plan, build_plan
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.study_file import load_study
from dlperf_study.supervision.processes import end_survivors
from dlperf_study.terminal import progress_display
from dlperf_study.wording import counted

if TYPE_CHECKING:
    from dlperf_study.execution.measurement import Measurements

#: How often the running measurements are looked at for news and for their end.
POLL_SECONDS = 1.0

Say = Callable[[str], None]


@dataclass
class StudyResult:
    """What a call did: how many runs it measured, how many were measured before, and the configurations that failed."""

    measured: int = 0
    already_measured: int = 0
    failures: list[str] = field(default_factory=list)


def make_plan(study_name: str, cluster_name: str, quick: bool) -> tuple[Plan, Cluster]:
    """Return the plan of a study on a cluster, and that cluster."""
    cluster = load_cluster(cluster_name)
    study = load_study(study_name, quick)

    def unsupported(configuration: Configuration) -> str | None:
        return unsupported_here(configuration, cluster, study.source)

    return build_plan(study, cluster, unsupported), cluster


def run_study(plan: Plan, cluster: Cluster, say: Say) -> StudyResult:
    """Measure every run of the plan that is not measured yet.

    A configuration that fails is recorded and reported, and the rest of the study runs.

    Raises:
        BusyError: another study measures on this machine, or another driver runs this study.

    """
    plan.write(StudyPaths.of(plan.study).plan_file)
    result = StudyResult()
    missing: list[tuple[Configuration, list[RequestedRun]]] = []
    for configuration in (entry.configuration for entry in plan.runnable):
        runs = missing_runs(configuration, cluster)
        missing_repetitions = [run for run in runs if run.configuration == configuration]
        result.already_measured += configuration.repeats - len(missing_repetitions)
        if runs:
            missing.append((configuration, runs))
    if missing:
        with study_lock(plan.study, cluster):
            _measure(missing, cluster, result, say)
    return result


def execute(configuration: Configuration, cluster: Cluster) -> None:
    """Execute the notebook for one configuration, in a separate process, and leave none of its processes running."""
    from dlperf_study.execution.measurement import Measurements

    with Measurements(cluster) as measurements:
        measurements.start(configuration, missing_runs(configuration, cluster))
        while not measurements.finish_one(POLL_SECONDS):
            pass


def _measure(
    missing: Sequence[tuple[Configuration, list[RequestedRun]]], cluster: Cluster, result: StudyResult, say: Say
) -> None:
    """Measure the missing runs of these configurations, and count them in ``result``."""
    # Papermill takes a second to import: only a call that has something to measure pays for it.
    from dlperf_study.execution.measurement import Measurements

    for survivor in end_survivors():
        say(f"ended what an earlier study left running: {survivor}")
    counts = {configuration.identity: len(runs) for configuration, runs in missing}
    with Progress(counts, say) as progress, Measurements(cluster) as measurements:
        for configuration, runs in missing:
            progress.start(configuration.identity)
            measurements.start(configuration, runs)
            while measurements.are_enough:
                _follow(measurements, progress, result)
        while measurements.running:
            _follow(measurements, progress, result)


def _follow(measurements: "Measurements", progress: "Progress", result: StudyResult) -> None:
    """Wait a moment for a measurement to end; print the news of all."""
    running = list(measurements.running)
    done = measurements.finish_one(POLL_SECONDS)
    for measurement in running:
        for news in measurement.news():
            progress.report(measurement.configuration.identity, news)
    if done:
        summary = done.summary()
        result.measured += summary.completed
        if summary.is_failure:
            result.failures.append(f"{done.configuration.identity}: {summary.message}")
        progress.end(done.configuration.identity, summary.message)


class Progress:
    """Prints each step with the time left, estimated from the runs done so far; a terminal shows a bar as well.

    Several configurations may run at once. A line about one begins with its name, unless it follows the line with
    which that configuration started.
    """

    def __init__(self, runs: Mapping[str, int], say: Say) -> None:
        self._left = dict(runs)
        self._total = len(runs)
        self._started = self._done = 0
        self._last_name = ""
        self._say = say
        self._start = time.monotonic()
        self._display = progress_display("runs")
        self._task = self._display.add_task("measuring", total=sum(runs.values()))

    def __enter__(self) -> "Progress":
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()

    def start(self, name: str) -> None:
        """Print that a configuration starts."""
        self._started += 1
        self._last_name = name
        self._say(f"[{self._started}/{self._total}] {name}: {counted(self._left[name], 'run')} …")

    def report(self, name: str, message: str) -> None:
        """Print news of a configuration that has started."""
        self._say("    " + (message if name == self._last_name else f"{name}: {message}"))
        self._last_name = name

    def end(self, name: str, summary: str) -> None:
        """Print how a configuration ended, and the time left."""
        runs = self._left.pop(name)
        self._done += runs
        self._display.advance(self._task, runs)
        elapsed = time.monotonic() - self._start
        left = elapsed / self._done * sum(self._left.values())
        self.report(name, f"{summary} ({_clock(elapsed)} elapsed, about {_clock(left)} left)")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
