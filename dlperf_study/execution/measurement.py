"""Runs of one configuration being measured: its notebook in a separate process, and their records afterwards."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dlperf_study.core import code_identity, part_search, resources, wording
from dlperf_study.core.errors import DlperfStudyError
from dlperf_study.execution import repetitions
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster import Cluster, software
from dlperf_study.machines.supervision.notebook import Execution, NotebookProcess, first_done
from dlperf_study.machines.supervision.processes import end_orphans
from dlperf_study.records.run_record import RequestedRun, is_completed, read, record, write
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, RunStatus

NOTEBOOK = resources.notebook("run_configuration")
#: How long a notebook may take beyond its runs, and beyond the deadline of each: kernel start, tables, nodes that end.
NOTEBOOK_SECONDS, RUN_SECONDS = 300.0, 180.0


@dataclass(frozen=True)
class MeasurementSummary:
    """How the runs of an execution ended.

    ``out_of_memory``: why the configuration does not fit in memory; empty if it does, or is not known to.
    ``was_refused``: whether its nodes refused it before anything started.
    """

    message: str
    completed: int
    is_failure: bool
    out_of_memory: str = ""
    was_refused: bool = False


class Measurement:
    """The running notebook of a configuration for one turn.

    Always call ``finish`` or ``abandon``: then none of its processes is left.
    """

    def __init__(self, configuration: Configuration, cluster: Cluster, missing: Sequence[RequestedRun]) -> None:
        self.configuration = configuration
        self._missing = missing
        self._cluster = cluster
        self._paths = repetitions.configuration_paths(configuration)
        self._paths.folder.mkdir(parents=True, exist_ok=True)
        self._started = datetime.now(UTC).isoformat()
        self._reported_states = self._job_states()
        self._earlier_records = {run.paths.folder: read(run.paths) for run in missing}
        for run in missing:
            # Of an attempt that was ended: what that waited for is no news of this one.
            run.paths.waiting.unlink(missing_ok=True)
        self._reported_waits: set[tuple[Path, str]] = set()
        self._deadline = time.monotonic() + self.allotted_seconds
        code = code_identity.describe_controller_code(missing[0].code.roots)
        request = repetitions.controller_request(missing, cluster)
        environment = {
            code_identity.CONTROLLER_CODE_VARIABLE: code,
            repetitions.REQUEST_VARIABLE: request,
            part_search.PARTS_VARIABLE: part_search.parts_value(),
        }
        parameters = configuration.as_dict()
        self.process = NotebookProcess(
            Execution(NOTEBOOK, self._paths.notebook, parameters, self._paths.failure, environment)
        )

    @property
    def allotted_seconds(self) -> float:
        """How long the notebook may take."""
        preparing_seconds = self._cluster.idle_wait_seconds + self._cluster.ready_seconds
        if self._cluster.device == "gpu":
            preparing_seconds += software.IMPORT_SECONDS
        run_seconds = self.configuration.timeout_seconds + preparing_seconds + RUN_SECONDS
        seconds = NOTEBOOK_SECONDS + len(self._missing) * run_seconds
        if queue := launchers.load(self._cluster.launcher).queue(self._cluster):
            seconds += queue.start_within_seconds
        return seconds

    @property
    def is_late(self) -> bool:
        """Whether it has used up its time."""
        return time.monotonic() > self._deadline

    def news(self) -> list[str]:
        """Return new states of its jobs, and its busy nodes."""
        states = self._job_states()
        new_states = states[len(self._reported_states) :]
        self._reported_states = states
        news = [state.partition(" ")[2] for state in new_states]
        for run in self._missing:
            for line in _lines(run.paths.waiting):
                if (run.paths.waiting, line) not in self._reported_waits:
                    self._reported_waits.add((run.paths.waiting, line))
                    news.append(line)
        return news

    @property
    def waited_in_vain(self) -> bool:
        """Whether nodes were still busy after the wait for idle ones."""
        cores = [facts["load"]["busy_cores_before"] for run in self._missing if (facts := self._record(run))]
        return bool(cores) and (cores[-1] or 0.0) > self._cluster.idle_max_busy_cores

    def finish(self) -> None:
        """End the notebook, and record the runs that its kernel left."""
        code = self.process.wait(0)
        if code is None:
            lateness = f"the notebook did not end within {self.allotted_seconds:.0f} s"
            reason = "; ".join([lateness, *self.process.stopped()])
        else:
            reason = wording.last_line(self.process.errors()) or f"the notebook ended with code {code}"
        self.abandon()
        if code == 0:
            self._paths.failure.unlink()
            return
        status = RunStatus.TIMEOUT if code is None else RunStatus.KILLED
        result = JobResult(status, reason, seconds=None, started=self._started)
        for run in self._missing:
            if run.paths.configuration_file.exists() and not run.paths.run_file.exists():
                write(record(run, result, repetitions.controller_facts(self._cluster, run.configuration)), run.paths)

    def abandon(self) -> None:
        """End the notebook and all its processes, on any node.

        Raises RunError when the queue that should cancel its jobs can't be reached.
        """
        self.process.end()
        end_orphans()
        launchers.load(self._cluster.launcher).cancel(self._paths.folder, self._cluster)

    def summary(self) -> MeasurementSummary:
        """Return how its runs ended, as their records say."""
        measured_runs = [run for run in self._missing if run.is_measured]
        unmeasured_runs = [run for run in self._missing if not run.is_measured]
        records = [self._record(run) for run in measured_runs]
        completed = sum(map(is_completed, records))
        message = f"{repetitions.run_names(self._missing)} completed"
        if completed < len(measured_runs):
            expected = (RunStatus.COMPLETED, RunStatus.OUT_OF_MEMORY)
            failed = next((record for record in records if record and record["status"] not in expected), None)
            if not failed and (reason := repetitions.out_of_memory_reason(repetitions.run_states(self._missing))):
                return MeasurementSummary(f"out of memory: {reason}", completed, False, reason)
            message = self._ending(failed)
            if not failed:
                return MeasurementSummary(message, completed, is_failure=True)
            was_refused = failed["status"] == RunStatus.FAILED and failed["seconds"] is None
            message = f"run {failed['repetition']} {message}"
            return MeasurementSummary(message, completed, is_failure=True, was_refused=was_refused)
        for run in unmeasured_runs:
            facts = self._record(run)
            if run.state().out_of_memory_reason:
                continue
            if not is_completed(facts):
                message = f"{run.purpose} run"
                if measured_runs:
                    message = f"{repetitions.run_names(measured_runs)} completed, but not the {run.purpose} one"
                return MeasurementSummary(f"{message}: {self._ending(facts)}", completed, is_failure=True)
        return MeasurementSummary(message, completed, is_failure=False)

    def _record(self, run: RequestedRun) -> dict[str, Any] | None:
        facts = read(run.paths)
        if facts == self._earlier_records[run.paths.folder]:
            return None
        return facts

    def _ending(self, facts: dict[str, Any] | None) -> str:
        """Return how a run ended, or the last line that the notebook logged about its failure."""
        if facts:
            return f"{facts['status']}: {facts['reason']}"
        """Return the last line that the notebook logged about its failure."""
        return next(reversed(_lines(self._paths.failure)), "the notebook ended without a run")

    def _job_states(self) -> list[str]:
        states: list[str] = []
        for job in self._paths.jobs():
            states += _lines(job.states)
        return sorted(states)


class Measurements:
    """The running notebooks: one, or as many as the queue allows.

    As a context manager it leaves no process: on exit it abandons those that have not finished.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._idle_wait_seconds = cluster.idle_wait_seconds
        self.running: list[Measurement] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for measurement in self.running:
            measurement.process.end()
        errors = []
        for measurement in self.running:
            try:
                measurement.abandon()
            except DlperfStudyError as abandoning:
                errors.append(abandoning)
        if errors:
            raise errors[0]

    def must_wait(self, configuration: Configuration) -> bool:
        """Return whether one must end before runs of this configuration may start.

        A configuration has one execution at a time: two would write the same notebook.
        """
        queue = launchers.load(self._cluster.launcher).queue(self._cluster)
        if any(measurement.configuration == configuration for measurement in self.running):
            return True
        if queue:
            return len(self.running) >= queue.jobs_in_queue
        return bool(self.running)

    def start(self, configuration: Configuration, missing: Sequence[RequestedRun]) -> None:
        """Start the notebook of a configuration."""
        cluster = replace(self._cluster, idle_wait_seconds=self._idle_wait_seconds)
        self.running.append(Measurement(configuration, cluster, missing))

    def finish_one(self, seconds: float) -> Measurement | None:
        """Finish and return a measurement that ended or is late."""
        ended = first_done([measurement.process for measurement in self.running], seconds)
        for measurement in self.running:
            if measurement.process is ended or measurement.is_late:
                measurement.finish()
                self.running.remove(measurement)
                # What keeps nodes busy for the whole study is not waited for before each of its runs.
                if measurement.waited_in_vain:
                    self._idle_wait_seconds /= 2
                else:
                    self._idle_wait_seconds = self._cluster.idle_wait_seconds
                return measurement
        return None


def _lines(file: Path) -> list[str]:
    if file.exists():
        return file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return []
