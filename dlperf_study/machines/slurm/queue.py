"""The commands of Slurm: sbatch, scontrol, squeue, sacct, scancel."""

import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from dlperf_study.core.errors import RunError

COMMAND_SECONDS = 60.0
#: Where Slurm's own configuration is, if not where its commands look.
SLURM_VARIABLES = ("SLURM_CONF",)

PHASES = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"), "waiting"),
    **dict.fromkeys(("SUSPENDED", "STOPPED"), "suspended"),
    **dict.fromkeys(("COMPLETED", "FAILED", "TIMEOUT", "DEADLINE", "CANCELLED", "PREEMPTED", "REVOKED"), "over"),
    **dict.fromkeys(("OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "FORGOTTEN"), "over"),
}
#: Reasons of ``squeue`` for which a job never starts.
NEVER = re.compile(
    r"PartitionNodeLimit|PartitionTimeLimit|PartitionConfig|BadConstraints|DependencyNeverSatisfied"
    r"|Invalid(Account|QOS)|AccountNotAllowed|QOSNotAllowed|(QOS|Assoc)\w*Per(QueuedJob|JobLimit)|(QOS|Assoc)\w*TimeLimit"
)
HELD = re.compile(r"JobHeld(User|Admin)|JobHoldMaxRequeue|held")


class Phase(StrEnum):
    """The phase of a job; Slurm has several states for each."""

    WAITING = "waiting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    OVER = "over"


@dataclass(frozen=True)
class QueuedJob:
    """A job in Slurm's queue; ``state`` and ``reason`` are Slurm's own."""

    state: str
    reason: str = ""
    nodes: str = ""
    down: tuple[str, ...] = ()
    job_id: str = ""

    @property
    def phase(self) -> Phase:
        """Its phase; a job in an unknown state has nodes."""
        return Phase(PHASES.get(self.state, Phase.RUNNING))

    @property
    def is_held(self) -> bool:
        """Whether somebody must release it before it can start."""
        return bool(HELD.search(self.reason))

    @property
    def can_never_start(self) -> bool:
        """Whether it requests what it can't get here."""
        return bool(NEVER.match(self.reason))

    def description(self) -> str:
        """Return the job in words: ``job 7: PENDING (Resources)``."""
        description = self.state
        if self.job_id:
            description = f"job {self.job_id}: {description}"
        if self.reason:
            description += f" ({self.reason})"
        if self.nodes:
            description += f" on {self.nodes}"
        if self.down:
            description += f"; {', '.join(self.down)} is down"
        return description


@dataclass(frozen=True)
class Partition:
    """A partition; ``max_nodes`` and ``max_time`` (in Slurm's format) are for one job."""

    name: str
    nodes: int
    max_nodes: int
    max_time: str
    is_default: bool


class Unreachable(RunError):
    """Slurm did not answer this time; it may the next time."""


class Refused(RunError):
    """Slurm refused a request; the message is its own."""


def parse_job(text: str) -> QueuedJob:
    """Return the job in a line of ``scontrol -o show job``."""
    return QueuedJob(_field(text, "JobState"), _field(text, "Reason"), _field(text, "NodeList"))


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Return the partitions in the lines of ``scontrol -o show partition``."""
    partitions = []
    for line in filter(None, text.splitlines()):
        nodes, limit = int(_field(line, "TotalNodes")), _field(line, "MaxNodes")
        max_nodes = min(nodes, int(limit)) if limit.isdecimal() else nodes
        is_default = _field(line, "Default") == "YES"
        partitions.append(
            Partition(_field(line, "PartitionName"), nodes, max_nodes, _field(line, "MaxTime"), is_default)
        )
    return tuple(partitions)


def parse_accounting(text: str) -> QueuedJob | None:
    """Return the job in the lines of ``sacct --parsable2``."""
    # None when accounting has no line for it, or none with a state.
    first = text.strip().partition("\n")[0]
    if not first:
        return None
    state, reason, nodes = map(_value, first.split("|"))
    # "CANCELLED by 1000" names the user after the state.
    if state:
        return QueuedJob(state.partition(" ")[0], reason, nodes)
    return None


def submit(script: Path, variables: Mapping[str, str]) -> str:
    """Submit a script; return the id of the job."""
    # sbatch passes its whole environment on to the job, so it gets only ``variables``: what training processes may see.
    configuration = {name: os.environ[name] for name in SLURM_VARIABLES if name in os.environ}
    answer = _command("sbatch", "--parsable", str(script), environment=dict(variables) | configuration)
    # With several clusters the answer is ``id;cluster``.
    return answer.partition(";")[0].strip()


def find(comment: str) -> str | None:
    """Return the id of the living job with this comment."""
    lines = _command("squeue", "--noheader", "--user", str(os.getuid()), "--format=%i %k").splitlines()
    for line in lines:
        job_id, _, comment_of_job = line.strip().partition(" ")
        if comment_of_job == comment:
            return job_id
    return None


def named(name: str) -> QueuedJob | None:
    """Return the job with this name, if one waits or runs."""
    line = _command("squeue", "--noheader", f"--name={name}", "--format=%T|%r|%N|%i").strip()
    if not line:
        return None
    state, reason, nodes, job_id = line.split("|")
    return QueuedJob(state, _value(reason), nodes, job_id=job_id)


def partitions() -> tuple[Partition, ...]:
    """Return the partitions there are, also those that are hidden."""
    return parse_partitions(_command("scontrol", "--all", "--oneliner", "show", "partition"))


def job(job_id: str) -> QueuedJob:
    """Return a job, from the accounting where Slurm has forgotten it otherwise; raises Unreachable."""
    try:
        queued = parse_job(_command("scontrol", "--oneliner", "show", "job", job_id))
    except Refused as error:
        if "Invalid job id" not in str(error):
            raise Unreachable(str(error)) from error
        queued = QueuedJob("FORGOTTEN")
        options = ("--noheader", "--parsable2", "--allocations", "--format=State,Reason,NodeList")
        # There may be no accounting, or it has never heard of the job.
        with suppress(RunError):
            queued = parse_accounting(_command("sacct", *options, "--jobs", job_id)) or queued
    queued = replace(queued, job_id=job_id)
    if queued.state != "NODE_FAIL":
        return queued
    # Slurm doesn't record with a job which of its nodes failed: the nodes that do not answer.
    argv = ("sinfo", "--noheader", "--Node", f"--nodes={queued.nodes}", "--states=down", "--format=%N")
    return replace(queued, down=tuple(dict.fromkeys(_command(*argv).split())))


def cancel(job_id: str) -> None:
    """End a job; one that is already over is left alone."""
    _command("scancel", "--quiet", job_id)


def cancel_named(name: str) -> None:
    """End the job with this name, if there is one."""
    _command("scancel", "--quiet", f"--name={name}")


def host_names(node_list: str) -> list[str]:
    """Return the nodes in Slurm's notation: ``h[1-3]`` are three."""
    return _command("scontrol", "show", "hostnames", node_list).split()


def _command(*argv: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what a command of Slurm prints, or raise its error."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS, env=environment)
    except FileNotFoundError as error:
        raise RunError(f"{argv[0]} is not on this machine; launcher slurm needs Slurm's commands here") from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"{argv[0]} did not answer within {COMMAND_SECONDS:.0f} s") from error
    if done.returncode == 0:
        return done.stdout
    errors = "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
    is_away = re.search(r"[Uu]nable to contact|Socket timed out|[Cc]onnection refused|Zero Bytes", errors)
    raise (Unreachable if is_away else Refused)(errors or f"{argv[0]} exited with code {done.returncode}")


def _field(text: str, name: str) -> str:
    match = re.search(rf"(?:^|\s){name}=(\S*)", text)
    if match:
        return _value(match.group(1))
    return ""


def _value(text: str) -> str:
    if text in ("(null)", "None", "None assigned", "Unknown"):
        return ""
    return text
