"""The sbatch script of a configuration, and the section ``slurm`` of a cluster file. Pure."""

import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

from pydantic import AfterValidator, Field

from dlperf_study.core.paths import JobPaths
from dlperf_study.machines.cluster import Cluster, sections
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.study.validation import Section, matching

#: The options that the sbatch script sets itself, by sbatch's long and short names.
SCRIPT_OPTIONS = (
    *("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--time", "-t", "--job-name", "-J", "--partition", "-p"),
    *("--account", "-A", "--output", "-o", "--error", "-e", "--array", "-a", "--wait", "-W", "--wrap", "--chdir", "-D"),
    *("--comment", "--export", "--requeue", "--no-requeue", "--parsable"),
)


def _option(text: str) -> str:
    if not re.fullmatch(r"--?[A-Za-z][^\n]*", text):
        raise ValueError("it must be one option of sbatch, as --constraint=v100")
    name = re.split(r"[=\s]", text, maxsplit=1)[0]
    for option in SCRIPT_OPTIONS:
        is_short = len(option) == 2
        # The value may follow a short name at once (-N2), and a long name may be abbreviated (--outp=log).
        if name.startswith(option) if is_short else option.startswith(name) and name.startswith("--"):
            raise ValueError(f"{option} is set by this package")
    return text


SbatchOption = Annotated[str, AfterValidator(_option)]
#: Stands in a line of the sbatch script, which a shell reads.
QueueName = Annotated[str, matching(r"[\w.,:+-]*", "a name of Slurm: letters, digits and _ . , : + -")]


class SlurmSettings(Section):
    """How jobs are put into the queue; only with launcher slurm."""

    partition: QueueName = Field(default="", description="left out: Slurm's default")
    account: QueueName = Field(default="", description="left out: your default")
    options: list[SbatchOption] = Field(default=[], description="further options of sbatch, one each")
    jobs_in_queue: int = Field(default=1, ge=1, le=1000, description="configurations in the queue at once")
    start_within_seconds: float = Field(
        default=float(sections.DAY_SECONDS),
        gt=0,
        le=sections.MAX_SECONDS,
        description="how long a job may wait to be started",
    )
    poll_seconds: float = Field(default=5.0, gt=0, le=3600, description="how often Slurm is asked")


#: Filled in when the script is submitted: the folder of the job, and its time limit.
JOB, TIME = "{job}", "{time}"
#: Jobs on the same node share its memory and its links, and spoil the measurement.
WHOLE_NODES = ("--ntasks-per-node=1", "--exclusive", "--mem=0")
#: Seconds that a repetition takes besides its run and the wait for an idle machine: starting and ending processes.
RUN_SECONDS = 60.0
#: Seconds that a job takes besides its repetitions.
JOB_SECONDS = 60.0


def script(name: str, nodes: int, cluster: Cluster) -> str:
    """Return the script with ``{job}`` and ``{time}`` still open."""
    # Slurm must not requeue the job by itself: it would measure into the folders of the first attempt.
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
    command = f"exec {quote(cluster.agent_python)} -m dlperf_study.machines.slurm.allocation {JOB}"
    return "\n".join(["#!/bin/sh", *lines, command, ""])


def devices_and_account(cluster: Cluster) -> tuple[str, ...]:
    """Return the options for devices, partition and account."""
    settings: SlurmSettings = cluster.settings
    options = []
    if cluster.device == "gpu":
        options.append(f"--gres=gpu:{cluster.devices_per_node}")
    if settings.partition:
        options.append(f"--partition={settings.partition}")
    if settings.account:
        options.append(f"--account={settings.account}")
    return tuple(options)


def filled(text: str, job: str, seconds: float) -> str:
    """Return the script as it is submitted."""
    return text.replace(JOB, quote(job)).replace(TIME, slurm_time(seconds))


def allotted_seconds(submissions: Sequence[Submission], timeout_seconds: float) -> float:
    """Return how long a job may last."""
    runs = (timeout_seconds + submission.preparing_seconds + RUN_SECONDS for submission in submissions)
    return JOB_SECONDS + sum(runs)


def slurm_time(seconds: float) -> str:
    """Return a time limit for sbatch, in whole minutes."""
    hours, minutes = divmod(-int(-seconds // 60), 60)
    return f"{hours}:{minutes:02d}:00"
