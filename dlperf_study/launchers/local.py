"""This machine: every task is a process here, under a guard."""

from collections.abc import Generator, Sequence
from pathlib import Path

from dlperf_study.launchers.base import Ending, Launcher, Place, Submission
from dlperf_study.launchers.coordinator import coordinate
from dlperf_study.launchers.rendering import submission_of
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.job import Job


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, each with its log; starts nothing."""
    return submission_of("local", job, cluster, folder)


def places(cluster: Cluster) -> tuple[Place, ...]:
    """Return this machine."""
    return (Place(python=cluster.guard_python),)


def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[Ending]:
    """Run one after another to its end, within ``timeout_seconds`` each; leaves no process behind."""
    for submission in submissions:
        yield coordinate(submission, places(cluster), timeout_seconds)


LAUNCHER = Launcher("local", render, execute, places)
