"""The wait for the runs of a submitted job: what the job wrote, against what Slurm says of it."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dlperf_study.slurm import queue
from dlperf_study.slurm.job import SubmittedJob, end
from dlperf_study.slurm.queue import Phase, QueuedJob, Unreachable
from dlperf_study.slurm.settings import SlurmSettings
from dlperf_study.study.job import JobResult, Outcome

#: How long a file that another machine wrote may take to appear here.
SETTLE_SECONDS = 10.0
#: How long Slurm may not answer, for a restart.
SILENCE_SECONDS = 900.0
#: How long a job may take to end after its time limit.
ENDING_SECONDS = 300.0
#: The outcome of a run by the state in which Slurm ended its job.
OUTCOMES = {
    "TIMEOUT": Outcome.TIMEOUT,
    "DEADLINE": Outcome.TIMEOUT,
    "CANCELLED": Outcome.KILLED,
    "PREEMPTED": Outcome.KILLED,
    "REVOKED": Outcome.KILLED,
    "OUT_OF_MEMORY": Outcome.OUT_OF_MEMORY,
    "NODE_FAIL": Outcome.FAILED,
    "BOOT_FAIL": Outcome.FAILED,
    "LAUNCH_FAILED": Outcome.FAILED,
}
#: Outcome and reason of a run that the job has no result for.
Failure = tuple[Outcome, str]


@dataclass(frozen=True)
class Patience:
    """How long a job may wait for its start, and how long it may then run."""

    start_seconds: float
    run_seconds: float


class Watch:
    """Follow one job until its runs have ended."""

    def __init__(self, job: SubmittedJob, settings: SlurmSettings) -> None:
        self._job = job
        self._poll_seconds = settings.poll_seconds
        self._patience = Patience(settings.start_within_seconds, job.allotted_seconds + ENDING_SECONDS)
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
            if result and result.outcome is Outcome.COMPLETED:
                return result
            self._update()
            if result:
                first_seen = first_seen or now
                has_answered = self._last_answer >= now
                if self._failure or (has_answered and has_decided(self._queued, result, now - first_seen)):
                    return with_slurm_reason(result, self._queued)
            elif self._failure:
                end(self._job)
                return JobResult(*self._failure, seconds=None)
            time.sleep(self._poll_seconds)

    def _update(self) -> None:
        """Ask Slurm for the job; a failure that is decided once stays so."""
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
            self._failure = Outcome.FAILED, f"{self._queued.description()}, {silence}"
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
    """Return the failure of a run that the job has no result for so far, or None while it may still come.

    ``phase_seconds`` is how long the job has been in its phase.
    """
    description = job.description()
    if job.phase is Phase.WAITING:
        if job.is_held:
            return Outcome.FAILED, f"{description}: it is held, so it would wait for ever"
        if job.can_never_start:
            return Outcome.UNSUPPORTED, f"{description}: it can never start"
        if phase_seconds > patience.start_seconds:
            return Outcome.FAILED, f"{description}: not started within {patience.start_seconds:.0f} s"
    if job.phase is Phase.SUSPENDED:
        return Outcome.KILLED, f"{description}: what is measured across a break is not true"
    if job.phase is Phase.OVER and phase_seconds > SETTLE_SECONDS:
        return OUTCOMES.get(job.state, Outcome.FAILED), f"{description}, and no result of this run"
    if job.phase is Phase.RUNNING and phase_seconds > patience.run_seconds:
        return Outcome.FAILED, f"{description}: still after {phase_seconds:.0f} s"
    return None


def has_decided(job: QueuedJob, result: JobResult, seconds: float) -> bool:
    """Return whether the state of a job shows why a run of it failed; ``seconds`` is since its result appeared.

    Slurm ends processes before it shows that it ends their job: for a while a run that it kills is a failed task of a
    job that still runs.
    """
    if job.phase is Phase.OVER or job.state == "COMPLETING":
        return job.phase is Phase.OVER
    # Ended by a signal: -9 in Python, above 128 where a program reports it of a process that it started.
    is_killed = any(code < 0 or code > 128 for code in filter(None, result.exit_codes.values()))
    # Without a failed task a node may have been lost.
    may_change = is_killed or not result.failed_task
    return not may_change or seconds > SETTLE_SECONDS


def with_slurm_reason(result: JobResult, job: QueuedJob) -> JobResult:
    """Return the result of a run; where Slurm ended the job, Slurm's state is the reason."""
    if job.state not in OUTCOMES:
        return result
    reason = f"{job.description()}: {result.reason}"
    return replace(result, outcome=OUTCOMES[job.state], reason=reason, failed_task="")
