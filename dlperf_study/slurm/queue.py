"""What Slurm is asked and told: sbatch, scontrol, squeue, sacct, scancel."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from dlperf_study.cluster.environment_variables import SLURM_VARIABLES, passed_environment
from dlperf_study.errors import RunError

COMMAND_SECONDS = 60.0

PHASES = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"), "waiting"),
    **dict.fromkeys(("SUSPENDED", "STOPPED"), "suspended"),
    **dict.fromkeys(("COMPLETED", "FAILED", "TIMEOUT", "DEADLINE", "CANCELLED", "PREEMPTED", "REVOKED"), "over"),
    **dict.fromkeys(("OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "FORGOTTEN"), "over"),
}
#: Reasons for waiting that no waiting cures, in the words of ``squeue``.
NEVER = re.compile(
    r"PartitionNodeLimit|PartitionTimeLimit|PartitionConfig|BadConstraints|DependencyNeverSatisfied"
    r"|Invalid(Account|QOS)|AccountNotAllowed|QOSNotAllowed|(QOS|Assoc)\w*Per(QueuedJob|JobLimit)|(QOS|Assoc)\w*TimeLimit"
)
HELD = re.compile(r"JobHeld(User|Admin)|JobHoldMaxRequeue|held")


class Phase(StrEnum):
    """What a job does, coarser than Slurm's states."""

    WAITING = "waiting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    OVER = "over"


@dataclass(frozen=True)
class QueuedJob:
    """A job as Slurm sees it; ``state`` and ``reason`` are Slurm's words."""

    state: str
    reason: str = ""
    nodes: str = ""
    down: tuple[str, ...] = ()
    number: str = ""

    @property
    def phase(self) -> Phase:
        """What it does; a state nobody knows is one of a job that has nodes."""
        return Phase(PHASES.get(self.state, Phase.RUNNING))

    @property
    def is_held(self) -> bool:
        """Whether somebody must let it go before it can start."""
        return bool(HELD.search(self.reason))

    @property
    def can_never_start(self) -> bool:
        """Whether it asks for what this cluster doesn't have, or not for this user."""
        return bool(NEVER.match(self.reason))

    def words(self) -> str:
        """Return the state with what is known about it: ``job 7: PENDING (Resources)``, ``job 7: RUNNING on h1``."""
        job = f"job {self.number}: " if self.number else ""
        reason = f" ({self.reason})" if self.reason else ""
        nodes = f" on {self.nodes}" if self.nodes else ""
        return f"{job}{self.state}{reason}{nodes}" + (f"; {', '.join(self.down)} is down" if self.down else "")


@dataclass(frozen=True)
class Partition:
    """A partition: its nodes, the most of them that one job may have, and how long that may last, in Slurm's words."""

    name: str
    nodes: int
    most_nodes: int
    most_time: str
    is_default: bool


class Unreachable(RunError):
    """Slurm did not answer this time; it may the next."""


class Refused(RunError):
    """Slurm does not do what it is asked; the message is its own."""


def parse_job(text: str) -> QueuedJob:
    """Return the job in one line of ``scontrol -o show job``, where ``(null)`` and ``None`` mean nothing."""
    return QueuedJob(_field(text, "JobState"), _field(text, "Reason"), _field(text, "NodeList"))


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Return the partitions in the lines of ``scontrol -o show partition``."""
    return tuple(map(_partition, filter(None, text.splitlines())))


def parse_accounting(text: str) -> QueuedJob | None:
    """Return the job in the lines of ``sacct --parsable2 --format=State,Reason,NodeList``; the first is the job's.

    None when accounting has no line for it, or none with a state.
    """
    first = text.strip().partition("\n")[0]
    if not first:
        return None
    state, reason, nodes = (_value(word) for word in first.split("|"))
    # "CANCELLED by 1000" names the user behind the state.
    return QueuedJob(state.partition(" ")[0], reason, nodes) if state else None


def submit(script: Path, variables: Mapping[str, str], further: Sequence[str]) -> str:
    """Hand a script to Slurm; return the id of the job.

    sbatch passes all it sees on to the job, so it sees only what training processes may see: the usual variables of
    this environment, the ``further`` ones by name, and ``variables``.
    """
    own = {name: os.environ[name] for name in SLURM_VARIABLES if name in os.environ}
    environment = passed_environment(os.environ, further) | dict(variables) | own
    answer = _command("sbatch", "--parsable", str(script), environment=environment)
    # With several clusters the answer is ``id;cluster``.
    return answer.partition(";")[0].strip()


def find(comment: str) -> str | None:
    """Return the id of the job with this comment, if one waits or runs."""
    lines = _command("squeue", "--noheader", "--user", str(os.getuid()), "--format=%i %k").splitlines()
    found = (line.strip().partition(" ") for line in lines)
    return next((number for number, _, text in found if text == comment), None)


def named(name: str) -> QueuedJob | None:
    """Return the job with this name, if one waits or runs."""
    found = _command("squeue", "--noheader", f"--name={name}", "--format=%T|%r|%N|%i").strip()
    if not found:
        return None
    state, reason, nodes, number = found.split("|")
    return QueuedJob(state, _value(reason), nodes, number=number)


def partitions() -> tuple[Partition, ...]:
    """Return the partitions there are, also those that are hidden."""
    return parse_partitions(_command("scontrol", "--all", "--oneliner", "show", "partition"))


def job(number: str) -> QueuedJob:
    """Return what Slurm knows of a job, from its accounting where it has one and nothing else.

    Raises Unreachable when Slurm does not answer.
    """
    try:
        found = parse_job(_command("scontrol", "--oneliner", "show", "job", number))
    except Refused as error:
        if "Invalid job id" not in str(error):
            raise Unreachable(str(error)) from error
        found = _accounting(number) or QueuedJob("FORGOTTEN")
    return replace(found, number=number, down=_down(found.nodes) if found.state == "NODE_FAIL" else ())


def cancel(number: str) -> None:
    """End a job; one that is already over is left alone."""
    _command("scancel", "--quiet", number)


def cancel_named(name: str) -> None:
    """End the job with this name, if there is one."""
    _command("scancel", "--quiet", f"--name={name}")


def host_names(node_list: str) -> list[str]:
    """Return the nodes in Slurm's notation: ``h[1-3]`` are three."""
    return _command("scontrol", "show", "hostnames", node_list).split()


def _down(node_list: str) -> tuple[str, ...]:
    """Return those of these nodes that do not answer; Slurm doesn't keep with a job which of them failed it."""
    words = ("sinfo", "--noheader", "--Node", f"--nodes={node_list}", "--states=down", "--format=%N")
    return tuple(dict.fromkeys(_command(*words).split()))


def _accounting(number: str) -> QueuedJob | None:
    """Return what the accounting remembers; None when there is none, or it has never heard of the job."""
    try:
        return parse_accounting(
            _command(
                *("sacct", "--noheader", "--parsable2", "--allocations"),
                *("--jobs", number, "--format=State,Reason,NodeList"),
            )
        )
    except RunError:
        return None


def _command(*argv: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what a command of Slurm prints; raise Refused or Unreachable with what it complains of."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS, env=environment)
    except FileNotFoundError as error:
        raise RunError(f"{argv[0]} is not on this machine; launcher slurm needs Slurm's commands here") from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"{argv[0]} did not answer within {COMMAND_SECONDS:.0f} s") from error
    if done.returncode == 0:
        return done.stdout
    diagnostic = "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
    away = re.search(r"[Uu]nable to contact|Socket timed out|[Cc]onnection refused|Zero Bytes", diagnostic)
    raise (Unreachable if away else Refused)(diagnostic or f"{argv[0]} exited with code {done.returncode}")


def _partition(text: str) -> Partition:
    nodes, most = int(_field(text, "TotalNodes")), _field(text, "MaxNodes")
    most_nodes = min(nodes, int(most)) if most.isdecimal() else nodes
    return Partition(
        _field(text, "PartitionName"), nodes, most_nodes, _field(text, "MaxTime"), _field(text, "Default") == "YES"
    )


def _field(text: str, name: str) -> str:
    found = re.search(rf"(?:^|\s){name}=(\S*)", text)
    return _value(found.group(1)) if found else ""


def _value(word: str) -> str:
    return "" if word in ("(null)", "None", "None assigned", "Unknown") else word
