"""A job submitted to Slurm. Its folder is all that a later driver has of it."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from dlperf_study.cluster.software import measuring_code
from dlperf_study.errors import EvidenceError
from dlperf_study.guard.submission import Submission
from dlperf_study.paths import ConfigurationPaths, JobPaths
from dlperf_study.slurm import queue
from dlperf_study.slurm.queue import Phase
from dlperf_study.slurm.script import allotted_seconds, filled
from dlperf_study.study.job import JobResult
from dlperf_study.study.json_record import RECORD, Positive, object_of, record_of, text_of
from dlperf_study.writing import write_atomically

SCRIPT = "job.sbatch"
CANCEL_SECONDS, CANCEL_POLL_SECONDS = 60.0, 0.5


@with_config(RECORD)
class OrderRecord(TypedDict):
    """What a job is to do: its runs, the time that each may take, and the digest of the code that measures them."""

    code: str
    timeout_seconds: Positive
    submissions: Annotated[list[dict[str, Any]], Field(min_length=1)]


ORDER, SUBMISSION, RESULT = TypeAdapter(OrderRecord), TypeAdapter(Submission), TypeAdapter(JobResult)


@dataclass(frozen=True)
class SubmittedJob:
    """Runs that one job does one after another; ``code`` is a digest of the code that must measure them."""

    paths: JobPaths
    submissions: tuple[Submission, ...]
    timeout_seconds: float
    code: str

    @property
    def job_id(self) -> str:
        """The id of the job, "" when Slurm never got it.

        A driver that died while it submitted has not recorded it: Slurm still has it, with the folder as comment.
        """
        if not self.paths.job_id.exists() and (job_id := queue.find(str(self.paths.folder))):
            write_atomically(self.paths.job_id, f"{job_id}\n")
        return self.paths.job_id.read_text().strip() if self.paths.job_id.exists() else ""

    def open_index(self, submission: Submission) -> int | None:
        """Return which of the job's runs this is, if its result is not recorded and the job has done it or still may.

        The same run has the same folder, and is measured by the same code.
        """
        for index, run in enumerate(self.submissions):
            is_same = (run.folder, run.fingerprint) == (submission.folder, submission.fingerprint)
            if is_same and not self.is_recorded(index) and (self.result(index) or self.is_alive):
                return index
        return None

    def result(self, index: int) -> JobResult | None:
        """Return how a run ended, once the job has written it; raises EvidenceError when that is damaged."""
        file = self.paths.result(index)
        if not file.exists():
            return None
        with _naming_the_remedy(file):
            return record_of(RESULT, object_of(text_of(file), str(file)), str(file))

    def is_recorded(self, index: int) -> bool:
        """Return whether the driver has recorded how this run ended."""
        return self.paths.recorded(index).exists()

    @property
    def is_done(self) -> bool:
        """Whether all its runs are recorded."""
        return all(self.is_recorded(index) for index in range(len(self.submissions)))

    @property
    def is_alive(self) -> bool:
        """Whether it still waits or runs, as far as Slurm knows."""
        return bool(self.job_id) and queue.job(self.job_id).phase is not Phase.OVER

    @property
    def allotted_seconds(self) -> float:
        """The time limit of the job."""
        return allotted_seconds(self.submissions, self.timeout_seconds)


def submit_job(submissions: Sequence[Submission], timeout_seconds: float) -> SubmittedJob:
    """Submit one job for these runs; raises RunError when Slurm refuses it."""
    first = submissions[0]
    job = SubmittedJob(first.paths.home.next_job(), tuple(submissions), timeout_seconds, measuring_code())
    values = []
    for submission in submissions:
        # Without the script: the folder of the job has it once, as it was submitted.
        files = {name: content for name, content in submission.files.items() if name != SCRIPT}
        values.append(json.loads(submission.as_json()) | {"files": files})
    request = {"code": job.code, "timeout_seconds": timeout_seconds, "submissions": values}
    write_atomically(job.paths.order, json.dumps(request, indent=1) + "\n")
    write_atomically(job.paths.script, filled(first.files[SCRIPT], str(job.paths.folder), job.allotted_seconds))
    job_id = queue.submit(job.paths.script, first.environment, first.pass_environment)
    write_atomically(job.paths.job_id, f"{job_id}\n")
    return job


def read_job(paths: JobPaths) -> SubmittedJob:
    """Return the job in a folder; raises EvidenceError when its order is damaged."""
    source = str(paths.order)
    with _naming_the_remedy(paths.order):
        order = record_of(ORDER, object_of(text_of(paths.order), source), source)
        submissions = []
        for index, values in enumerate(order["submissions"]):
            submissions.append(record_of(SUBMISSION, values, f"{source}: submissions[{index}]"))
    return SubmittedJob(paths, tuple(submissions), order["timeout_seconds"], order["code"])


@contextmanager
def _naming_the_remedy(file: Path) -> Iterator[None]:
    """Say what to do where the content of a job's file is not what this program writes."""
    try:
        yield
    except EvidenceError as error:
        remedy = f"delete {file.parent}, and the same command submits its runs again"
        raise EvidenceError(f"{error}; {remedy}") from error


def open_jobs(home: ConfigurationPaths) -> Iterator[SubmittedJob]:
    """Yield the jobs of a configuration that have runs without a record, the latest first."""
    for paths in reversed(home.jobs()):
        if paths.order.exists() and not (job := read_job(paths)).is_done:
            yield job


def end(job: SubmittedJob) -> None:
    """Cancel a job that is still alive, and wait until it has left its nodes."""
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
