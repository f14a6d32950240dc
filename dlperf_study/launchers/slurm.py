"""Slurm: one job does all runs of a configuration; guards on its nodes are reached by ``srun``.

A job outlives the driver that submitted it. A later driver that wants the same runs follows it, and submits nothing.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.submission import Node, Submission, submission_of
from dlperf_study.launchers._base import Launcher, Queue
from dlperf_study.paths import ConfigurationPaths
from dlperf_study.slurm.allocation import allocated_nodes
from dlperf_study.slurm.check import check_slurm
from dlperf_study.slurm.job import SCRIPT, SubmittedJob, Watch, abandon, open_jobs, submit_job
from dlperf_study.slurm.queue import Refused
from dlperf_study.slurm.script import script
from dlperf_study.slurm.settings import SlurmSettings
from dlperf_study.study.job import Job, JobResult, Outcome

#: One run of a job: the job, and which of its runs.
JobRun = tuple[SubmittedJob, int]


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, and its sbatch script; starts nothing."""
    submission = submission_of("slurm", job, cluster, folder)
    return replace(submission, files={SCRIPT: script(submission.paths.home.folder.name, job.nodes, cluster)})


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return the nodes of the job that this process belongs to; raises RunError outside a job."""
    return allocated_nodes(cluster.guard_python)


def queue(cluster: Cluster) -> Queue:
    """Return the limits of the queue."""
    settings: SlurmSettings = cluster.settings
    return Queue(settings.start_within_seconds, settings.jobs_in_queue)


def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
    """Run all in one job, within ``timeout_seconds`` each; a job of an earlier driver is followed.

    An interrupt cancels the job, and so does closing this iterator; a driver that is killed leaves the job to Slurm.
    Raises RunError when Slurm can't be reached.
    """
    home = submissions[0].paths.home
    try:
        yield from _results(home, submissions, cluster, timeout_seconds)
    except KeyboardInterrupt:
        cancel(home.folder, cluster)
        yield JobResult(Outcome.KILLED, "interrupted", seconds=None, interrupted=True)
    finally:
        cancel(home.folder, cluster)


def cancel(folder: Path, cluster: Cluster) -> None:
    """End the jobs of the configuration in this folder that still have runs without a record."""
    for job in open_jobs(ConfigurationPaths(folder)):
        abandon(job)


def _results(
    home: ConfigurationPaths, submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float
) -> Iterator[JobResult]:
    try:
        runs = _runs(home, submissions, timeout_seconds)
    except Refused as error:
        for _ in submissions:
            yield JobResult(Outcome.FAILED, f"Slurm refused the job: {error}", seconds=None)
        return
    watches = {job.paths: Watch(job, cluster.settings) for job, _ in runs}
    for job, index in runs:
        result = watches[job.paths].result(index)
        try:
            yield result
        finally:
            job.paths.recorded(index).touch()


def _runs(home: ConfigurationPaths, submissions: Sequence[Submission], timeout_seconds: float) -> list[JobRun]:
    """Return the run of a job for each submission; those that no job does yet are submitted.

    A job with none of these runs, because the code or the configuration has changed, is cancelled: it would measure
    into the same folders.
    """
    jobs = list(open_jobs(home))
    followed = [_followed(jobs, submission) for submission in submissions]
    followed_paths = [run[0].paths for run in followed if run]
    for job in jobs:
        if job.paths not in followed_paths:
            abandon(job)
    new = [submission for submission, run in zip(submissions, followed, strict=True) if not run]
    submitted: Iterator[JobRun] = iter(())
    if new:
        new_job = submit_job(new, timeout_seconds)
        submitted = ((new_job, index) for index in range(len(new)))
    return [run or next(submitted) for run in followed]


def _followed(jobs: Sequence[SubmittedJob], submission: Submission) -> JobRun | None:
    """Return the run of an earlier driver's job for this submission, if that job has done it or still may."""
    for job in jobs:
        index = job.index_of(submission)
        if index is not None and not job.is_recorded(index) and (job.result(index) or job.is_alive):
            return job, index
    return None


LAUNCHER = Launcher(
    *("slurm", render, execute, nodes, check_slurm),
    cancel=cancel,
    queue=queue,
    settings=SlurmSettings,
)
