"""How long a study takes: by the records of earlier runs, and while it is measured each step with the time left."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType

from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.terminal import progress_display
from dlperf_study.execution.pending import PendingExecution
from dlperf_study.records.run_record import read
from dlperf_study.study.job import RunStatus
from dlperf_study.study.plan import Plan


def earlier_run_seconds(plan: Plan) -> dict[str, float]:
    """Return the mean seconds of a completed run, by identity.

    Runs of a different cluster are runs of a different configuration. A configuration without a completed run is
    missing.
    """
    means: dict[str, float] = {}
    begun_runs = StudyPaths.of(plan.study).begun_runs()
    for entry in plan.runnable:
        configuration_id = entry.configuration.configuration_id
        seconds: list[float] = []
        for paths in begun_runs.get(configuration_id, ()):
            facts = read(paths)
            if facts and facts.get("status") == RunStatus.COMPLETED and facts.get("seconds"):
                seconds.append(facts["seconds"] + (facts.get("load", {}).get("waited_seconds") or 0.0))
        if seconds:
            means[configuration_id] = fmean(seconds)
    return means


#: In the place of the identity of a run that is not known yet.
_UNKNOWN = ""


@dataclass
class _Duration:
    """The executions of a configuration that this call has done."""

    seconds: float = 0.0
    runs: int = 0


@dataclass(frozen=True)
class Situation:
    """The runs that a call still has to measure.

    ``is_round_over``: nothing is left of the round of which a run ended.
    """

    runs_left: int
    seconds_left: float | None = None
    is_round_over: bool = False


Watch = Callable[[Situation], None]


def unwatched(situation: Situation) -> None:
    """Do nothing: nobody watches."""


class Progress:
    """Prints each step with the time left.

    ``watch`` is called at the start, and after each execution before the next one starts.
    Several executions may go on at once, each of another configuration. A line about one begins with the name of its
    configuration, unless it follows the line with which that execution started. ``labels``: names by identity.
    """

    def __init__(
        self,
        executions: Sequence[PendingExecution],
        say: Callable[[str], None],
        watch: Watch = unwatched,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._labels = labels
        self._left: Counter[str] = Counter()
        self._left_of_round: Counter[int | None] = Counter()
        self._watch = watch
        self._total = self._started = 0
        self._running: dict[str, tuple[PendingExecution, float]] = {}
        self._done: dict[str, _Duration] = {}
        self._last_name = ""
        self._say = say
        self._start = time.monotonic()
        self._display = progress_display("runs")
        self._task = self._display.add_task("measuring", total=0)
        self.add(executions)

    def __enter__(self) -> "Progress":
        self._display.start()
        self._watch(Situation(sum(self._left.values())))
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()

    def add(self, executions: Sequence[PendingExecution]) -> None:
        """Count further executions among those to be done."""
        self._total += len(executions)
        for execution in executions:
            self._left[execution.configuration.configuration_id] += len(execution.runs)
            self._left_of_round[execution.runs[0].turn.round] += 1
        self._show_total()

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def expected_seconds(self, executions: Sequence[PendingExecution]) -> float | None:
        """Return how long executions will take, or None."""
        runs: Counter[str] = Counter()
        for execution in executions:
            runs[execution.configuration.configuration_id] += len(execution.runs)
        return self._expected_seconds(runs) if self._runs_done else None

    def start(self, execution: PendingExecution) -> None:
        """Print that an execution starts."""
        name = execution.configuration.configuration_id
        self._started += 1
        self._running[name] = execution, time.monotonic()
        self._last_name = name
        self._say(f"[{self._started}/{self._total}] {self._label(name)}: {execution.run_names} …")

    def expect(self, runs: int) -> None:
        """Count further runs that may be needed."""
        self._left[_UNKNOWN] = runs
        self._show_total()

    def skip(self, execution: PendingExecution) -> None:
        """Leave out an execution that was to be done."""
        self._total -= 1
        self._left[execution.configuration.configuration_id] -= len(execution.runs)
        self._left_of_round[execution.runs[0].turn.round] -= 1
        self._show_total()

    def _show_total(self) -> None:
        self._display.update(self._task, total=sum(self._left.values()) + self._runs_done)

    def report(self, name: str, message: str) -> None:
        """Print news of a configuration that has started."""
        self._say("    " + (message if name == self._last_name else f"{self._label(name)}: {message}"))
        self._last_name = name

    def _label(self, name: str) -> str:
        # A probe of the batch search is no configuration of the plan.
        return self._labels.get(name, name)

    def end(self, name: str, summary: str) -> None:
        """Print how the execution of a configuration ended, and the time left."""
        execution, started = self._running.pop(name)
        runs, now = len(execution.runs), time.monotonic()
        self._left[name] -= runs
        duration = self._done.setdefault(name, _Duration())
        duration.seconds += now - started
        duration.runs += runs
        self._display.advance(self._task, runs)
        # Where several go on at once, their sum passes faster than the clock.
        left = 0.0
        if self._seconds_done:
            left = self._expected_seconds(self._left) * self.elapsed_seconds / self._seconds_done
        self.report(name, f"{summary} ({_clock(self.elapsed_seconds)} elapsed, about {_clock(left)} left)")
        turn = execution.runs[0].turn
        self._left_of_round[turn.round] -= 1
        self._watch(Situation(sum(self._left.values()), left, not self._left_of_round[turn.round]))

    @property
    def _runs_done(self) -> int:
        return sum(duration.runs for duration in self._done.values())

    @property
    def _seconds_done(self) -> float:
        return sum(duration.seconds for duration in self._done.values())

    def _expected_seconds(self, runs: Counter[str]) -> float:
        """Return the expected seconds of so many runs of each configuration.

        A run is taken to last as long as those of its configuration did, or where there is none, as long as all did.
        """
        seconds = 0.0
        for name, count in runs.items():
            done = self._done.get(name) or _Duration(self._seconds_done, self._runs_done)
            seconds += count * done.seconds / done.runs
        return seconds


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
