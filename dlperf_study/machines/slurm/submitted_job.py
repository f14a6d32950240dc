"""A job submitted to Slurm, and the wait for its runs: what the job wrote, against what Slurm says of it.

The folder of a job is all that a later controller has of it.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter

from dlperf_study.core import wording, writing
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import ConfigurationPaths, JobPaths
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.machines.slurm import queue
from dlperf_study.machines.slurm.queue import Phase, QueuedJob, Unreachable
from dlperf_study.machines.slurm.script import SlurmSettings, allotted_seconds, filled
from dlperf_study.study.job import JobResult, RunStatus
from dlperf_study.study.record_types import Positive, TypedDict, record_type
from dlperf_study.study.validation import parse_object, read_text_file, validate_record

SCRIPT = "job.sbatch"
CANCEL_SECONDS, CANCEL_POLL_SECONDS = 60.0, 0.5
#: How long a file that another machine wrote may take to appear here.
SETTLE_SECONDS = 10.0
#: How long Slurm may not answer, for a restart.
SILENCE_SECONDS = 900.0
#: How long a job may take to end after its time limit.
ENDING_SECONDS = 300.0
#: The status of a run by the state in which Slurm ended its job.
OUTCOMES = {
    "TIMEOUT": RunStatus.TIMEOUT,
    "DEADLINE": RunStatus.TIMEOUT,
    "CANCELLED": RunStatus.KILLED,
    "PREEMPTED": RunStatus.KILLED,
    "REVOKED": RunStatus.KILLED,
    "OUT_OF_MEMORY": RunStatus.OUT_OF_MEMORY,
    "NODE_FAIL": RunStatus.FAILED,
    "BOOT_FAIL": RunStatus.FAILED,
    "LAUNCH_FAILED": RunStatus.FAILED,
}
#: Outcome and reason of a run that the job has no result for.
Failure = tuple[RunStatus, str]
T = TypeVar("T")


@record_type
class OrderRecord(TypedDict):
    """The runs of a job, and the time of each."""

    timeout_seconds: Positive
    submissions: Annotated[list[dict[str, Any]], Field(min_length=1)]


@cache
def _reader(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


@dataclass(frozen=True)
class SubmittedJob:
    """Runs that one job does one after another."""

    paths: JobPaths
    submissions: tuple[Submission, ...]
    timeout_seconds: float

    @property
    def job_id(self) -> str:
        """The id of the job, "" when Slurm never got it."""
        # A controller that died while it submitted has not recorded it: Slurm still has it, with the folder as comment.
        if not self.paths.job_id.exists() and (job_id := queue.find(str(self.paths.folder))):
            writing.write_atomically(self.paths.job_id, f"{job_id}\n")
        if self.paths.job_id.exists():
            return self.paths.job_id.read_text().strip()
        return ""

    def open_index(self, submission: Submission) -> int | None:
        """Return which unfinished run of the job this is."""
        # The same run has the same folder, and is measured by the same code.
        for index, run in enumerate(self.submissions):
            is_same = (run.folder, run.cache_key) == (submission.folder, submission.cache_key)
            if is_same and not self.is_recorded(index) and (self.result(index) or self.is_alive):
                return index
        return None

    def result(self, index: int) -> JobResult | None:
        """Return how a run ended, or None."""
        file = self.paths.result(index)
        if not file.exists():
            return None
        with _naming_the_remedy(file):
            record = parse_object(read_text_file(file), str(file))
            result: JobResult = validate_record(_reader(JobResult), record, str(file))
            return result

    def is_recorded(self, index: int) -> bool:
        """Return whether the controller has recorded how this run ended."""
        return self.paths.recorded(index).exists()

    @property
    def is_done(self) -> bool:
        """Whether all its runs are recorded."""
        return all(self.is_recorded(index) for index in range(len(self.submissions)))

    @property
    def is_alive(self) -> bool:
        """Whether it still waits or runs, as far as Slurm knows."""
        return bool(self.job_id) and queue.job(self.job_id).phase is not Phase.OVER


def submit_job(submissions: Sequence[Submission], timeout_seconds: float) -> SubmittedJob:
    """Submit one job for these runs; raises RunError when Slurm refuses it."""
    first = submissions[0]
    job = SubmittedJob(first.paths.home.next_job(), tuple(submissions), timeout_seconds)
    values = []
    for submission in submissions:
        # Without the script: the folder of the job has it once, as it was submitted.
        files = {name: content for name, content in submission.files.items() if name != SCRIPT}
        values.append(json.loads(submission.as_json()) | {"files": files})
    request = {"timeout_seconds": timeout_seconds, "submissions": values}
    writing.write_atomically(job.paths.order, json.dumps(request, indent=1) + "\n")
    seconds = allotted_seconds(submissions, timeout_seconds)
    writing.write_atomically(job.paths.script, filled(first.files[SCRIPT], str(job.paths.folder), seconds))
    inherited = first.job.variables.passed(os.environ, first.pass_environment)
    job_id = queue.submit(job.paths.script, inherited | dict(first.cluster.environment))
    writing.write_atomically(job.paths.job_id, f"{job_id}\n")
    return job


def read_job(paths: JobPaths) -> SubmittedJob:
    """Return the job in a folder; raises RecordError if damaged."""
    source = str(paths.order)
    with _naming_the_remedy(paths.order):
        order = validate_record(_reader(OrderRecord), parse_object(read_text_file(paths.order), source), source)
        submissions = []
        for index, values in enumerate(order["submissions"]):
            submissions.append(validate_record(_reader(Submission), values, f"{source}: submissions[{index}]"))
    return SubmittedJob(paths, tuple(submissions), order["timeout_seconds"])


@contextmanager
def _naming_the_remedy(file: Path) -> Iterator[None]:
    """Add the remedy to errors about a job's file."""
    try:
        yield
    except RecordError as error:
        remedy = f"delete {file.parent}, and the same command submits its runs again"
        raise RecordError(f"{error}; {remedy}") from error


def open_jobs(home: ConfigurationPaths) -> Iterator[SubmittedJob]:
    """Yield the unfinished jobs of a configuration, the latest first."""
    for paths in reversed(home.jobs()):
        if paths.order.exists() and not (job := read_job(paths)).is_done:
            yield job


def end(job: SubmittedJob) -> None:
    """Cancel a living job, and wait for its nodes."""
    deadline = time.monotonic() + CANCEL_SECONDS
    if job.is_alive:
        queue.cancel(job.job_id)
    while job.is_alive and time.monotonic() < deadline:
        time.sleep(CANCEL_POLL_SECONDS)


def abandon(job: SubmittedJob) -> None:
    """End a job, and record that no result of it is expected."""
    end(job)
    for index in range(len(job.submissions)):
        job.paths.recorded(index).touch()


@dataclass(frozen=True)
class Patience:
    """How long a job may wait, and run."""

    start_seconds: float
    run_seconds: float


class Watch:
    """Follow one job until its runs have ended."""

    def __init__(self, job: SubmittedJob, settings: SlurmSettings) -> None:
        self._job = job
        self._poll_seconds = settings.poll_seconds
        run_seconds = allotted_seconds(job.submissions, job.timeout_seconds) + ENDING_SECONDS
        self._patience = Patience(settings.start_within_seconds, run_seconds)
        self._failure: Failure | None = None
        self._description = ""
        self._queued = QueuedJob("PENDING", job_id=job.job_id)
        self._phase_since = self._last_answer = time.monotonic()

    def result(self, index: int) -> JobResult:
        """Wait for one run of the job; return how it ended."""
        first_seen = None
        while True:
            # First the job's own result, then Slurm: to a run that Slurm interrupts, that looks like a failure.
            result, now = self._job.result(index), time.monotonic()
            if result and result.status is RunStatus.COMPLETED:
                return result
            self._update()
            if result:
                first_seen = first_seen or now
                has_answered = self._last_answer >= now
                if self._failure or (has_answered and has_decided(self._queued, result, now - first_seen)):
                    return explain_by_slurm(result, self._queued)
            elif self._failure:
                end(self._job)
                status, reason = self._failure
                return JobResult(status, f"{reason}{self._printed()}", seconds=None)
            time.sleep(self._poll_seconds)

    def _printed(self) -> str:
        """Return the last line that a failed job printed."""
        output = self._job.paths.output
        if self._queued.state != "FAILED" or not output.is_file():
            return ""
        line = wording.last_line(output.read_text(encoding="utf-8", errors="replace"))
        if line:
            return f": {line} ({output})"
        return ""

    def _update(self) -> None:
        """Ask Slurm for the job; a decided failure stays."""
        if self._failure:
            return
        try:
            queued = queue.job(self._queued.job_id)
        except Unreachable as error:
            self._report(f"Slurm does not answer: {error}")
        else:
            self._last_answer = time.monotonic()
            if queued.phase is not self._queued.phase:
                self._phase_since = self._last_answer
            self._queued = queued
            self._report(queued.description())
        now = time.monotonic()
        if now - self._last_answer > SILENCE_SECONDS:
            silence = f"and since then Slurm has not answered ({SILENCE_SECONDS:.0f} s)"
            self._failure = RunStatus.FAILED, f"{self._queued.description()}, {silence}"
        else:
            self._failure = failure(self._queued, now - self._phase_since, self._patience)

    def _report(self, description: str) -> None:
        """Print and record what has changed."""
        if description == self._description:
            return
        self._description = description
        line = f"{datetime.now(UTC).isoformat(timespec='seconds')} {description}"
        with open(self._job.paths.states, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        print(line, flush=True)


def failure(job: QueuedJob, phase_seconds: float, patience: Patience) -> Failure | None:
    """Return the failure of a run without a result, or None.

    ``phase_seconds`` is how long the job has been in its phase.
    """
    description = job.description()
    if job.phase is Phase.WAITING:
        if job.is_held:
            return RunStatus.FAILED, f"{description}: it is held, so it would never start"
        if job.can_never_start:
            return RunStatus.UNSUPPORTED, f"{description}: it can never start"
        if phase_seconds > patience.start_seconds:
            return RunStatus.FAILED, f"{description}: not started within {patience.start_seconds:.0f} s"
    if job.phase is Phase.SUSPENDED:
        return RunStatus.KILLED, f"{description}: a measurement across a suspension is invalid"
    if job.phase is Phase.OVER and phase_seconds > SETTLE_SECONDS:
        return OUTCOMES.get(job.state, RunStatus.FAILED), f"{description}, and no result of this run"
    if job.phase is Phase.RUNNING and phase_seconds > patience.run_seconds:
        return RunStatus.FAILED, f"{description}: still after {phase_seconds:.0f} s"
    return None


def has_decided(job: QueuedJob, result: JobResult, seconds: float) -> bool:
    """Return whether a job's state explains a failure."""
    # Slurm ends processes before it shows that it ends their job: for a while a run that it kills is a failed task of a
    # job that still runs.
    if job.phase is Phase.OVER or job.state == "COMPLETING":
        return job.phase is Phase.OVER
    # Ended by a signal: -9 in Python, above 128 where a program reports it of a process that it started.
    is_killed = any(code < 0 or code > 128 for code in filter(None, result.exit_codes.values()))
    # Without a failed task a node may have been lost.
    may_change = is_killed or not result.failed_task
    return not may_change or seconds > SETTLE_SECONDS


def explain_by_slurm(result: JobResult, job: QueuedJob) -> JobResult:
    """Return a result, with Slurm's reason if Slurm ended it."""
    if job.state not in OUTCOMES:
        return result
    reason = f"{job.description()}: {result.reason}"
    return replace(result, status=OUTCOMES[job.state], reason=reason, failed_task="")
