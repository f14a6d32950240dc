"""Slurm: one job does all runs of a configuration; guards on its nodes are reached by ``srun``.

A job outlives the one who submitted it. Whoever asks for the same runs again follows it, and submits nothing.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.submission import Node, Submission, submission_of
from dlperf_study.launchers._base import Launcher
from dlperf_study.paths import ConfigurationPaths
from dlperf_study.slurm import allocation
from dlperf_study.slurm.job import SCRIPT, SubmittedJob, open_jobs, submit_job
from dlperf_study.slurm.queue import Refused
from dlperf_study.slurm.script import devices_and_account, script
from dlperf_study.slurm.watch import Watch, give_up
from dlperf_study.study.job import Job, JobResult, Outcome

#: One run of a job: the job, and which of its runs.
Part = tuple[SubmittedJob, int]


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, and the script that brings them into the queue; starts nothing."""
    rendered = submission_of("slurm", job, cluster, folder)
    return replace(rendered, files={SCRIPT: script(rendered.paths.home.folder.name, job.nodes, cluster)})


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return the nodes of the job that this process belongs to; raises RunError outside of one."""
    return allocation.allocated_nodes(cluster.guard_python)


def execute(
    submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float
) -> Generator[JobResult, None, None]:
    """Run all in one job, within ``timeout_seconds`` each; a job of an earlier driver is followed.

    An interrupt, and whoever closes this iterator, cancels the job; one who is killed leaves it to Slurm.
    Raises RunError when Slurm can't be asked.
    """
    home = submissions[0].paths.home
    try:
        yield from _endings(home, submissions, cluster, timeout_seconds)
    except KeyboardInterrupt:
        cancel(home.folder, cluster)
        yield JobResult(Outcome.KILLED, "interrupted", seconds=None, interrupted=True)
    finally:
        cancel(home.folder, cluster)


def cancel(folder: Path, cluster: Cluster) -> None:
    """End the jobs of the configuration in this folder that somebody still waited for."""
    for job in open_jobs(ConfigurationPaths(folder)):
        give_up(job)


def by_hand(cluster: Cluster, node: Node, argv: Sequence[str]) -> Sequence[str]:
    """Return how a person runs a command on a node, in a job of its own."""
    return ("srun", f"--nodelist={node.name}", *devices_and_account(cluster), *argv)


def _endings(
    home: ConfigurationPaths, submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float
) -> Iterator[JobResult]:
    try:
        parts = _parts(home, submissions, timeout_seconds)
    except Refused as error:
        yield from (JobResult(Outcome.FAILED, f"Slurm refused the job: {error}", seconds=None) for _ in submissions)
        return
    watches = {job.paths: Watch(job, cluster.slurm) for job, _ in parts}
    for job, index in parts:
        result = watches[job.paths].result(index)
        try:
            yield result
        finally:
            job.paths.recorded(index).touch()


def _parts(home: ConfigurationPaths, submissions: Sequence[Submission], timeout_seconds: float) -> list[Part]:
    """Return which run of which job each of these is; those that no job does yet are handed over.

    A job that nobody wants any more, because the code or the configuration has changed, is cancelled: it would
    measure into the same folders.
    """
    jobs = list(open_jobs(home))
    followed = [_followed(jobs, submission) for submission in submissions]
    wanted = [part[0].paths for part in followed if part]
    for job in jobs:
        if job.paths not in wanted:
            give_up(job)
    fresh = [submission for submission, part in zip(submissions, followed, strict=True) if not part]
    new = iter(_handed_over(fresh, timeout_seconds))
    return [part or next(new) for part in followed]


def _handed_over(submissions: Sequence[Submission], timeout_seconds: float) -> list[Part]:
    if not submissions:
        return []
    job = submit_job(submissions, timeout_seconds)
    return [(job, index) for index in range(len(submissions))]


def _followed(jobs: Sequence[SubmittedJob], submission: Submission) -> Part | None:
    """Return the run of an earlier driver's job that this is, if that job has done it or still may."""
    for job in jobs:
        index = job.index_of(submission)
        if index is not None and not job.is_recorded(index) and (job.result(index) or job.lives):
            return job, index
    return None


LAUNCHER = Launcher(
    *("slurm", render, execute, nodes, cancel),
    commands=("sbatch", "srun", "salloc", "scontrol", "squeue", "scancel"),
    commands_from="run this where Slurm's commands are",
    by_hand=by_hand,
)
