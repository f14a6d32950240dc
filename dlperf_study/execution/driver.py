"""A whole study: one execution of the notebook per configuration, in order, resumed where it stopped."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.execution.gate import study_lock
from dlperf_study.execution.run import missing_repetitions, trace_is_missing
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


# How far a study is, and how long the rest will take.


class Progress:
    """Prints each step with the time left, estimated from the runs done so far; a terminal shows a bar as well.

    Several configurations may run at once. A line about one begins with its name, unless it follows the line with
    which that configuration started.
    """

    def __init__(self, runs: Mapping[str, int], say: Callable[[str], None]) -> None:
        self._left = dict(runs)
        self._total = len(runs)
        self._started = self._done = 0
        self._spoken_of = ""
        self._say = say
        self._start = time.monotonic()
        self._display = progress_display("runs")
        self._task = self._display.add_task("measuring", total=sum(runs.values()))

    def __enter__(self) -> "Progress":
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()

    def starts(self, name: str) -> None:
        """Say that a configuration starts."""
        self._started += 1
        self._spoken_of = name
        self._say(f"[{self._started}/{self._total}] {name}: {counted(self._left[name], 'run')} …")

    def says(self, name: str, words: str) -> None:
        """Say what is new of a configuration that has started."""
        self._say("    " + (words if name == self._spoken_of else f"{name}: {words}"))
        self._spoken_of = name

    def ended(self, name: str, verdict: str) -> None:
        """Say how a configuration ended, and the time left."""
        runs = self._left.pop(name)
        self._done += runs
        self._display.advance(self._task, runs)
        elapsed = time.monotonic() - self._start
        left = elapsed / self._done * sum(self._left.values())
        self.says(name, f"{verdict} ({_clock(elapsed)} elapsed, about {_clock(left)} left)")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


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
    with Progress(runs, say) as progress, Measurements(cluster) as measurements:
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
