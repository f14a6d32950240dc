"""The sbatch script of a configuration. Pure."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.submission import Submission
from dlperf_study.paths import JobPaths
from dlperf_study.slurm.settings import SlurmSettings

#: Filled in when the script is submitted: the folder of the job, and its time limit.
JOB, TIME = "{job}", "{time}"
#: Jobs on the same node share its memory and its links, and spoil the measurement.
WHOLE_NODES = ("--ntasks-per-node=1", "--exclusive", "--mem=0")
#: Seconds that a repetition takes besides its run and the wait for an idle machine: starting and ending processes.
RUN_SECONDS = 60.0
#: Seconds that a job takes besides its repetitions.
JOB_SECONDS = 60.0


def script(name: str, nodes: int, cluster: Cluster) -> str:
    """Return the script with ``{job}`` and ``{time}`` still open.

    Slurm must not requeue the job by itself: it would measure into the folders of the first attempt.
    """
    settings: SlurmSettings = cluster.settings
    options = (
        f"--job-name={quote(name)}",
        f"--nodes={nodes}",
        *WHOLE_NODES,
        *map(quote, devices_and_account(cluster)),
        f"--time={TIME}",
        "--no-requeue",
        f"--comment={JOB}",
        f"--output={JobPaths(Path(JOB)).output}",
        *settings.options,
    )
    lines = [f"#SBATCH {option}" for option in options]
    command = f"exec {quote(cluster.guard_python)} -m dlperf_study.slurm.allocation {JOB}"
    return "\n".join(["#!/bin/sh", *lines, command, ""])


def devices_and_account(cluster: Cluster) -> tuple[str, ...]:
    """Return the options for the devices of a job, its partition and its account."""
    settings: SlurmSettings = cluster.settings
    return (
        *([f"--gres=gpu:{cluster.devices_per_node}"] if cluster.device == "gpu" else []),
        *([f"--partition={settings.partition}"] if settings.partition else []),
        *([f"--account={settings.account}"] if settings.account else []),
    )


def filled(text: str, job: str, seconds: float) -> str:
    """Return the script as it is submitted."""
    return text.replace(JOB, quote(job)).replace(TIME, slurm_time(seconds))


def allotted_seconds(submissions: Sequence[Submission], timeout_seconds: float) -> float:
    """Return how long a job may last: the timeout of every repetition, and what comes before and after it."""
    runs = (timeout_seconds + submission.preparing_seconds + RUN_SECONDS for submission in submissions)
    return JOB_SECONDS + sum(runs)


def slurm_time(seconds: float) -> str:
    """Return a time limit in sbatch's format; Slurm counts whole minutes, so it is rounded up."""
    hours, minutes = divmod(-int(-seconds // 60), 60)
    return f"{hours}:{minutes:02d}:00"
