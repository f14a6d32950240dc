"""Waiting for a job: what it says of its runs, what Slurm says of it, and when to wait no longer."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dlperf_study.cluster.cluster import Slurm
from dlperf_study.slurm import queue
from dlperf_study.slurm.job import SubmittedJob
from dlperf_study.slurm.queue import Phase, QueuedJob, Unreachable
from dlperf_study.study.job import JobResult, Outcome

#: What another machine wrote may take this long to be seen here.
SETTLE_SECONDS = 10.0
#: Slurm may be restarted meanwhile, but not be away for longer than this.
SILENCE_SECONDS = 900.0
#: A job that ends at its time limit may take this long for it.
ENDING_SECONDS = 300.0
CANCEL_SECONDS, CANCEL_POLL_SECONDS = 60.0, 0.5

#: How Slurm's words for the end of a job and ours meet.
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

Verdict = tuple[Outcome, str]


@dataclass(frozen=True)
class Patience:
    """How long a job may wait for its start, and how long it may then run."""

    start_seconds: float
    run_seconds: float


class Watch:
    """Looks at one job until its runs have ended."""

    def __init__(self, job: SubmittedJob, settings: Slurm) -> None:
        self._job = job
        self._poll_seconds = settings.poll_seconds
        self._patience = Patience(settings.start_within_seconds, job.allotted_seconds + ENDING_SECONDS)
        self._verdict: Verdict | None = None
        self._words = ""
        self._seen = QueuedJob("PENDING", number=job.number)
        self._since = self._answered = time.monotonic()

    def result(self, index: int) -> JobResult:
        """Wait for one run of the job; return how it ended."""
        while True:
            # First what the job says, then what Slurm says: a run that Slurm cuts off takes it for a failure.
            result = self._job.result(index)
            if result and result.outcome is Outcome.COMPLETED:
                return result
            self._look()
            if result and self._seen.state != "COMPLETING":
                return with_slurms_word(result, self._seen)
            if self._verdict:
                end(self._job)
                return JobResult(*self._verdict, seconds=None)
            time.sleep(self._poll_seconds)

    def _look(self) -> None:
        """See how the job is; once that is decided it stays so."""
        if self._verdict:
            return
        try:
            seen = queue.job(self._seen.number)
        except Unreachable as error:
            self._say(f"Slurm does not answer: {error}")
        else:
            self._answered = time.monotonic()
            self._since = self._since if seen.phase is self._seen.phase else self._answered
            self._seen = seen
            self._say(seen.words())
        self._verdict = self._judge(time.monotonic())

    def _judge(self, now: float) -> Verdict | None:
        if now - self._answered > SILENCE_SECONDS:
            return (
                Outcome.FAILED,
                f"{self._seen.words()}, and since then Slurm has not answered ({SILENCE_SECONDS:.0f} s)",
            )
        return verdict(self._seen, now - self._since, self._patience)

    def _say(self, words: str) -> None:
        """Show and keep what has changed."""
        if words == self._words:
            return
        self._words = words
        line = f"{datetime.now(UTC).isoformat(timespec='seconds')} {words}"
        with open(self._job.paths.states, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        print(line, flush=True)


def verdict(seen: QueuedJob, since_seconds: float, patience: Patience) -> Verdict | None:
    """Return how a run ends of which the job has said nothing so far, or None while there is hope.

    ``since_seconds`` is how long the job has been in its phase.
    """
    if seen.phase is Phase.WAITING:
        return _verdict_on_waiting(seen, since_seconds, patience)
    if seen.phase is Phase.SUSPENDED:
        return Outcome.KILLED, f"{seen.words()}: what is measured across a break is not true"
    if seen.phase is Phase.OVER and since_seconds > SETTLE_SECONDS:
        return OUTCOMES.get(seen.state, Outcome.FAILED), f"{seen.words()}, and no word of this run"
    if seen.phase is Phase.RUNNING and since_seconds > patience.run_seconds:
        return Outcome.FAILED, f"{seen.words()}: still after {since_seconds:.0f} s"
    return None


def with_slurms_word(result: JobResult, seen: QueuedJob) -> JobResult:
    """Return the ending of a run; where Slurm ended the job, that is why."""
    if seen.state not in OUTCOMES:
        return result
    return replace(result, outcome=OUTCOMES[seen.state], reason=f"{seen.words()}: {result.reason}", failed_task="")


def end(job: SubmittedJob) -> None:
    """Cancel a job that still lives, and wait until it has left its nodes."""
    deadline = time.monotonic() + CANCEL_SECONDS
    if job.lives:
        queue.cancel(job.number)
    while job.lives and time.monotonic() < deadline:
        time.sleep(CANCEL_POLL_SECONDS)


def give_up(job: SubmittedJob) -> None:
    """End a job, and expect nothing of it any more."""
    end(job)
    for index in range(len(job.submissions)):
        job.paths.recorded(index).touch()


def _verdict_on_waiting(seen: QueuedJob, since_seconds: float, patience: Patience) -> Verdict | None:
    if seen.is_held:
        return Outcome.FAILED, f"{seen.words()}: it is held, so it would wait for ever"
    if seen.can_never_start:
        return Outcome.UNSUPPORTED, f"{seen.words()}: it can never start"
    if since_seconds > patience.start_seconds:
        return Outcome.FAILED, f"{seen.words()}: not started within {patience.start_seconds:.0f} s"
    return None
