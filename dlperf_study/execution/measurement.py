"""One configuration being measured: its notebook in a process of its own, and what is left of it afterwards."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from dlperf_study import launchers
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.evidence.run_record import Circumstances, read, record, write
from dlperf_study.execution.run import fingerprint, paths_of, trace_is_missing
from dlperf_study.paths import PROJECT
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, Outcome
from dlperf_study.supervision.notebook import Execution, NotebookProcess, first_done
from dlperf_study.supervision.processes import end_survivors
from dlperf_study.wording import last_line

NOTEBOOK = PROJECT / "notebooks" / "run_configuration.ipynb"
#: How long a notebook may take beyond its runs, and beyond the deadline of each: kernel start, tables, nodes that end.
NOTEBOOK_SECONDS, RUN_SECONDS = 300.0, 180.0


@dataclass(frozen=True)
class Verdict:
    """What became of the runs of a configuration, in words; ``completed`` counts those that are measured."""

    words: str
    completed: int
    is_failure: bool


class Measurement:
    """The notebook of a configuration at work. Always call ``finish`` or ``abandon``: nothing of it is left then."""

    def __init__(self, configuration: Configuration, cluster: Cluster, repetitions: list[int]) -> None:
        self.configuration, self.repetitions = configuration, repetitions
        self._cluster = cluster
        self._paths = paths_of(configuration)
        self._paths.folder.mkdir(parents=True, exist_ok=True)
        self._begun = datetime.now(UTC).isoformat()
        self._told = self._states()
        self._deadline = time.monotonic() + self.allotted_seconds
        self.process = NotebookProcess(
            Execution(NOTEBOOK, self._paths.notebook, configuration.as_dict(), self._paths.failure)
        )

    @property
    def allotted_seconds(self) -> float:
        """How long the notebook may take."""
        run_seconds = self.configuration.timeout_seconds + self._cluster.idle_wait_seconds + RUN_SECONDS
        queue = launchers.load(self._cluster.launcher).queue(self._cluster)
        queue_seconds = queue.start_within_seconds if queue else 0.0
        return NOTEBOOK_SECONDS + queue_seconds + (self.configuration.repeats + 1) * run_seconds

    def news(self) -> list[str]:
        """Return what became of its jobs in a queue since this was last asked."""
        found = self._states()
        new, self._told = found[len(self._told) :], found
        return [line.partition(" ")[2] for line in new]

    @property
    def is_late(self) -> bool:
        """Whether it has had all the time it may take."""
        return time.monotonic() > self._deadline

    def finish(self) -> None:
        """End the notebook; runs that it began and could not record, because its kernel died, are recorded here."""
        result = self._failure()
        self.abandon()
        if result:
            self._record_unfinished(result)
        else:
            self._paths.failure.unlink()

    def abandon(self) -> None:
        """End the notebook, and what works for it wherever it is.

        Raises RunError when those who should cancel its jobs can't be reached.
        """
        self.process.end()
        end_survivors()
        launchers.load(self._cluster.launcher).cancel(self._paths.folder, self._cluster)

    def verdict(self) -> Verdict:
        """Return what became of its runs."""
        words, completed = self._repetitions()
        is_whole = completed == len(self.repetitions)
        if is_whole and trace_is_missing(self.configuration, self._cluster):
            return Verdict(f"{words}, but not the traced one: {self._trace()}", completed, is_failure=True)
        return Verdict(words, completed, is_failure=not is_whole)

    def _repetitions(self) -> tuple[str, int]:
        """Return what became of its repetitions in words, and how many completed."""
        records = [read(self._paths.run(repetition)) for repetition in self.repetitions]
        completed = sum(facts is not None and facts["outcome"] == Outcome.COMPLETED for facts in records)
        if completed == len(self.repetitions):
            return f"{completed} of {completed} runs completed", completed
        failed = next((facts for facts in records if facts and facts["outcome"] != Outcome.COMPLETED), None)
        if failed:
            return f"run {failed['repetition']} {failed['outcome']}: {failed['reason']}", completed
        return self._last_words(), completed

    def _trace(self) -> str:
        """Return what became of the traced run in words."""
        facts = read(self._paths.trace(self.configuration.traced.identity))
        return f"{facts['outcome']}: {facts['reason']}" if facts else self._last_words()

    def _last_words(self) -> str:
        """Return the last line that the notebook said of its failure."""
        lines = _lines(self._paths.failure)
        return lines[-1] if lines else "the notebook ended without a run"

    def _states(self) -> list[str]:
        return sorted(line for job in self._paths.jobs() for line in _lines(job.states))

    def _failure(self) -> JobResult | None:
        """Return how the notebook failed, or None."""
        code = self.process.wait(0)
        if code is None:
            reason = f"the notebook did not end within {self.allotted_seconds:.0f} s"
            return JobResult(Outcome.TIMEOUT, reason, seconds=None)
        if code == 0:
            return None
        said = last_line(self.process.errors()) or f"the notebook ended with code {code}"
        return JobResult(Outcome.KILLED, said, seconds=None)

    def _record_unfinished(self, result: JobResult) -> None:
        """Record the runs that were begun and have no record."""
        for repetition in self.repetitions:
            run = self._paths.run(repetition)
            if run.configuration_file.exists() and not run.run_file.exists():
                wanted = fingerprint(self.configuration, self._cluster)
                known = Circumstances(self.configuration, repetition, wanted, self._cluster)
                write(record(known, replace(result, started=self._begun), run), run)


class Measurements:
    """The notebooks at work: one at a time, or as many as the cluster file wants in a queue.

    As a context manager it leaves nothing behind: those that have not finished then are abandoned.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.running: list[Measurement] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for measurement in self.running:
            measurement.process.end()
        for measurement in self.running:
            measurement.abandon()

    @property
    def are_enough(self) -> bool:
        """Whether one must end before the next may start."""
        queue = launchers.load(self._cluster.launcher).queue(self._cluster)
        return len(self.running) >= (queue.jobs_in_queue if queue else 1)

    def start(self, configuration: Configuration, repetitions: list[int]) -> None:
        """Start the notebook of a configuration."""
        self.running.append(Measurement(configuration, self._cluster, repetitions))

    def finish_one(self, seconds: float) -> Measurement | None:
        """Finish one that has ended or is late, and return it; None when none ends within ``seconds``."""
        ended = first_done([measurement.process for measurement in self.running], seconds)
        done = next((one for one in self.running if one.process is ended or one.is_late), None)
        if done:
            done.finish()
            self.running.remove(done)
        return done


def _lines(file: Path) -> list[str]:
    return file.read_text().strip().splitlines() if file.exists() else []
