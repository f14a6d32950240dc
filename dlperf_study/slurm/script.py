"""The sbatch script of a configuration: pure text."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.submission import Submission
from dlperf_study.paths import JobPaths

#: Filled in when the script is submitted: the folder of the job, and its time limit.
JOB, TIME = "{job}", "{time}"
#: Whoever shares a node shares its memory and its links, and spoils the measurement.
WHOLE_NODES = ("--ntasks-per-node=1", "--exclusive", "--mem=0")
#: What a repetition takes beside its run and the wait for an idle machine: starting and ending processes on all nodes.
RUN_SECONDS = 60.0
#: What a job takes beside its repetitions.
JOB_SECONDS = 60.0


def script(name: str, nodes: int, cluster: Cluster) -> str:
    """Return the script with ``{job}`` and ``{time}`` still open.

    A job that Slurm started a second time by itself would measure into the folders of the first.
    """
    options = (
        f"--job-name={quote(name)}",
        f"--nodes={nodes}",
        *WHOLE_NODES,
        *map(quote, devices_and_account(cluster)),
        f"--time={TIME}",
        "--no-requeue",
        f"--comment={JOB}",
        f"--output={JobPaths(Path(JOB)).output}",
        *cluster.slurm.options,
    )
    lines = [f"#SBATCH {option}" for option in options]
    command = f"exec {quote(cluster.guard_python)} -m dlperf_study.slurm.allocation {JOB}"
    return "\n".join(["#!/bin/sh", *lines, command, ""])


def devices_and_account(cluster: Cluster) -> tuple[str, ...]:
    """Return the options that say which devices a job needs, of which partition, and for which account."""
    return (
        *([f"--gres=gpu:{cluster.devices_per_node}"] if cluster.device == "gpu" else []),
        *([f"--partition={cluster.slurm.partition}"] if cluster.slurm.partition else []),
        *([f"--account={cluster.slurm.account}"] if cluster.slurm.account else []),
    )


def filled(text: str, job: str, seconds: float) -> str:
    """Return the script as it is submitted."""
    return text.replace(JOB, quote(job)).replace(TIME, slurm_time(seconds))


def allotted_seconds(submissions: Sequence[Submission], timeout_seconds: float) -> float:
    """Return how long a job may last: every repetition its timeout, and what comes before and behind it."""
    return JOB_SECONDS + sum(timeout_seconds + one.idle_wait_seconds + RUN_SECONDS for one in submissions)


def slurm_time(seconds: float) -> str:
    """Return a time limit as sbatch takes it; Slurm counts whole minutes, so it is rounded up."""
    hours, minutes = divmod(-int(-seconds // 60), 60)
    return f"{hours}:{minutes:02d}:00"
