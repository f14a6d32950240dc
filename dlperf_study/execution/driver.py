"""A whole study: one execution of the notebook per configuration, in order, resumed where it stopped."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dlperf_study import launchers
from dlperf_study.execution.fingerprint import fingerprint
from dlperf_study.execution.gate import Load, end_survivors, machine_lock
from dlperf_study.execution.progress import Progress
from dlperf_study.execution.record import Circumstances, read, record, write
from dlperf_study.execution.run import missing_repetitions, paths_of, trace_is_missing
from dlperf_study.execution.support import unsupported_here
from dlperf_study.launchers.base import Ending
from dlperf_study.paths import PROJECT, StudyPaths
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.cluster_file import load_cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.outcome import Outcome
from dlperf_study.study.plan import Plan, build_plan
from dlperf_study.study.study_file import load_study

if TYPE_CHECKING:
    from dlperf_study.supervision.notebook import NotebookProcess

NOTEBOOK = PROJECT / "notebooks" / "run_configuration.ipynb"
#: Beyond the deadlines of its runs, how long a notebook may take: kernel start, waiting for an idle machine.
NOTEBOOK_SECONDS = 300.0

#: The load of a run that could not be recorded by the one who saw it.
NOTHING_KNOWN = Load(waited_seconds=None, busy_cores_before=None, survivors_ended=())

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
    launchers.load(place.launcher, cluster)
    asked = load_study(study, quick)
    return build_plan(asked, place, lambda c: unsupported_here(c, place, asked.source)), place


def run_study(plan: Plan, cluster: Cluster, say: Say) -> Result:
    """Measure every run of the plan that is not measured yet.

    A configuration that fails is recorded and reported, and the rest of the study runs.

    Raises:
        BusyError: another study measures on this machine.

    """
    plan.write(StudyPaths.of(plan.study).plan_file)
    configurations = [entry.configuration for entry in plan.runnable]
    missing = {c.identity: missing_repetitions(c, cluster) for c in configurations}
    result = Result(found=sum(c.repeats - len(missing[c.identity]) for c in configurations))
    waiting = [c for c in configurations if missing[c.identity] or trace_is_missing(c, cluster)]
    if waiting:
        with machine_lock(f"study {plan.study}"):
            _measure(waiting, missing, cluster, result, say)
    return result


def _measure(
    waiting: list[Configuration], missing: dict[str, list[int]], cluster: Cluster, result: Result, say: Say
) -> None:
    for survivor in end_survivors():
        say(f"ended what an earlier study left running: {survivor}")
    progress = Progress([len(missing[c.identity]) + trace_is_missing(c, cluster) for c in waiting], say)
    for configuration in waiting:
        repetitions = missing[configuration.identity]
        progress.starts(configuration.identity)
        execute(configuration, cluster, repetitions)
        verdict, completed = _verdict(configuration, repetitions)
        result.measured += completed
        if completed == len(repetitions) and trace_is_missing(configuration, cluster):
            verdict = f"{verdict}, but not the traced one: {_last_line(paths_of(configuration).failure)}"
            result.failures.append(f"{configuration.identity}: {verdict}")
        elif completed < len(repetitions):
            result.failures.append(f"{configuration.identity}: {verdict}")
        progress.ended(verdict)


def execute(configuration: Configuration, cluster: Cluster, repetitions: list[int]) -> None:
    """Execute the notebook for one configuration, in its own process, and leave nothing of it behind.

    Runs that the notebook began and could not record, because its kernel died, are recorded here.
    """
    # Papermill takes a second to import: only a call that has something to measure pays for it.
    from dlperf_study.supervision.notebook import Execution, NotebookProcess

    paths = paths_of(configuration)
    paths.folder.mkdir(parents=True, exist_ok=True)
    begun = datetime.now(UTC).isoformat()
    process = NotebookProcess(Execution(NOTEBOOK, paths.notebook, configuration.as_dict(), paths.failure))
    try:
        ending = _wait(process, configuration)
    finally:
        process.end()
        end_survivors()
    if ending:
        _record_unfinished(configuration, cluster, repetitions, begun, ending)
    else:
        paths.failure.unlink()


def _wait(process: "NotebookProcess", configuration: Configuration) -> Ending | None:
    """Wait for the notebook; return how it failed, or None."""
    deadline = configuration.repeats * configuration.timeout_seconds + NOTEBOOK_SECONDS
    code = process.wait(deadline)
    if code is None:
        return Ending(Outcome.TIMEOUT, f"the notebook did not end within {deadline:.0f} s", seconds=None)
    if code == 0:
        return None
    lines = process.errors().splitlines()
    return Ending(Outcome.KILLED, lines[-1] if lines else f"the notebook ended with code {code}", seconds=None)


def _record_unfinished(
    configuration: Configuration, cluster: Cluster, repetitions: list[int], begun: str, ending: Ending
) -> None:
    """Record the runs that were begun and have no record."""
    for repetition in repetitions:
        run = paths_of(configuration).run(repetition)
        if run.configuration_file.exists() and not run.run_file.exists():
            known = Circumstances(configuration, repetition, fingerprint(configuration, cluster), cluster, begun)
            write(record(known, NOTHING_KNOWN, ending, run), run)


def _verdict(configuration: Configuration, repetitions: list[int]) -> tuple[str, int]:
    """Return what became of these repetitions in words, and how many completed."""
    paths = paths_of(configuration)
    records = [read(paths.run(repetition)) for repetition in repetitions]
    completed = sum(facts is not None and facts["outcome"] == Outcome.COMPLETED for facts in records)
    if completed == len(repetitions):
        return f"{completed} of {completed} runs completed", completed
    failed = next((facts for facts in records if facts and facts["outcome"] != Outcome.COMPLETED), None)
    if failed:
        return f"run {failed['repetition']} {failed['outcome']}: {failed['reason']}", completed
    return _last_line(paths.failure), completed


def _last_line(file: Path) -> str:
    lines = file.read_text().strip().splitlines() if file.exists() else []
    return lines[-1] if lines else "the notebook ended without a run"
