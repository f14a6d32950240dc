"""A job handed to Slurm. Its folder is all that a driver which comes back has of it."""

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
    """Runs that one job does one after another; ``code`` is a digest of the code that was to measure them."""

    paths: JobPaths
    submissions: tuple[Submission, ...]
    timeout_seconds: float
    code: str

    @property
    def number(self) -> str:
        """The id of the job, "" when Slurm never got it.

        A driver that died while it submitted has not written it down: Slurm still has it, with the folder as comment.
        """
        if not self.paths.number.exists() and (found := queue.find(str(self.paths.folder))):
            write_atomically(self.paths.number, f"{found}\n")
        return self.paths.number.read_text().strip() if self.paths.number.exists() else ""

    def index_of(self, submission: Submission) -> int | None:
        """Return which of the job's runs this is, if any: the same folder, measured by the same code."""
        wanted = (submission.folder, submission.fingerprint)
        runs = [(one.folder, one.fingerprint) for one in self.submissions]
        return runs.index(wanted) if wanted in runs else None

    def result(self, index: int) -> JobResult | None:
        """Return how a run ended, once the job has said it."""
        file = self.paths.result(index)
        return JobResult.from_json(file.read_text()) if file.exists() else None

    def is_recorded(self, index: int) -> bool:
        """Return whether whoever ordered this run knows its ending already."""
        return self.paths.recorded(index).exists()

    @property
    def is_done_with(self) -> bool:
        """Whether nobody waits for anything of this job any more."""
        return all(self.is_recorded(index) for index in range(len(self.submissions)))

    @property
    def lives(self) -> bool:
        """Whether it still waits or runs, as far as Slurm knows."""
        return bool(self.number) and queue.job(self.number).phase is not Phase.OVER

    @property
    def allotted_seconds(self) -> float:
        """The time limit of the job."""
        return allotted_seconds(self.submissions, self.timeout_seconds)


def submit_job(submissions: Sequence[Submission], timeout_seconds: float) -> SubmittedJob:
    """Submit one job for these runs; raises RunError when Slurm doesn't take it."""
    paths = submissions[0].paths.home.next_job()
    job = SubmittedJob(paths, tuple(submissions), timeout_seconds, measuring_code())
    order = {
        "code": job.code,
        "timeout_seconds": timeout_seconds,
        "submissions": [json.loads(one.as_json()) | {"files": _files_of_a_run(one)} for one in submissions],
    }
    write_atomically(paths.order, json.dumps(order, indent=1) + "\n")
    script = filled(submissions[0].files[SCRIPT], str(paths.folder), job.allotted_seconds)
    write_atomically(paths.script, script)
    number = queue.submit(paths.script, submissions[0].environment, submissions[0].pass_environment)
    write_atomically(paths.number, f"{number}\n")
    return job


def _files_of_a_run(submission: Submission) -> dict[str, str]:
    """Return what lies in a run's folder; the script is the job's, which has it once, as it was submitted."""
    return {name: text for name, text in submission.files.items() if name != SCRIPT}


def read_job(paths: JobPaths) -> SubmittedJob:
    """Return the job that lies in a folder."""
    order = json.loads(paths.order.read_text())
    submissions = tuple(Submission.from_json(json.dumps(one)) for one in order["submissions"])
    return SubmittedJob(paths, submissions, order["timeout_seconds"], order["code"])


def open_jobs(home: ConfigurationPaths) -> Iterator[SubmittedJob]:
    """Yield the jobs of a configuration of which somebody still waits for something, the latest first."""
    for paths in reversed(home.jobs()):
        if paths.order.exists() and not (job := read_job(paths)).is_done_with:
            yield job
