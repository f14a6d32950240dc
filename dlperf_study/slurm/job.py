"""A job submitted to Slurm. Its folder is all that a later driver has of it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlperf_study.cluster.software import measuring_code
from dlperf_study.guard.submission import Submission
from dlperf_study.paths import ConfigurationPaths, JobPaths, write_atomically
from dlperf_study.slurm import queue
from dlperf_study.slurm.queue import Phase
from dlperf_study.slurm.script import allotted_seconds, filled
from dlperf_study.study.job import JobResult

SCRIPT = "job.sbatch"


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

    def index_of(self, submission: Submission) -> int | None:
        """Return which of the job's runs this is, if any: the same folder, measured by the same code."""
        for index, run in enumerate(self.submissions):
            if (run.folder, run.fingerprint) == (submission.folder, submission.fingerprint):
                return index
        return None

    def result(self, index: int) -> JobResult | None:
        """Return how a run ended, once the job has written it."""
        file = self.paths.result(index)
        return JobResult.from_json(file.read_text()) if file.exists() else None

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
        files = {name: text for name, text in submission.files.items() if name != SCRIPT}
        values.append(json.loads(submission.as_json()) | {"files": files})
    request = {"code": job.code, "timeout_seconds": timeout_seconds, "submissions": values}
    write_atomically(job.paths.order, json.dumps(request, indent=1) + "\n")
    write_atomically(job.paths.script, filled(first.files[SCRIPT], str(job.paths.folder), job.allotted_seconds))
    job_id = queue.submit(job.paths.script, first.environment, first.pass_environment)
    write_atomically(job.paths.job_id, f"{job_id}\n")
    return job


def read_job(paths: JobPaths) -> SubmittedJob:
    """Return the job in a folder."""
    request = json.loads(paths.order.read_text())
    submissions = tuple(Submission.from_json(json.dumps(values)) for values in request["submissions"])
    return SubmittedJob(paths, submissions, request["timeout_seconds"], request["code"])


def open_jobs(home: ConfigurationPaths) -> Iterator[SubmittedJob]:
    """Yield the jobs of a configuration that have runs without a record, the latest first."""
    for paths in reversed(home.jobs()):
        if paths.order.exists() and not (job := read_job(paths)).is_done:
            yield job
