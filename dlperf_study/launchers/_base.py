"""What a launcher takes and gives."""

import json
import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dlperf_study.launchers._variables import recorded_environment
from dlperf_study.paths import RunPaths
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.job import Job
from dlperf_study.study.outcome import Outcome


@dataclass(frozen=True)
class Command:
    """One process to start on one node: its log is a file in the run's folder there."""

    name: str
    role: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    log: str
    node: int = 0


@dataclass(frozen=True)
class Submission:
    """A job rendered for one launcher; ``{host_N}`` and what else a task may name is filled in when it starts.

    ``folder`` is where the evidence goes. When files must be fetched, each node makes ``node_folder``, the same path
    everywhere, writes below it, and removes it. ``python`` is the argv of the Python that trains, which is asked for
    its libraries. ``files`` are texts by name that lie in the folder of the run on every node before it starts.
    """

    launcher: str
    folder: str
    commands: tuple[Command, ...]
    ports: int
    rank_output: str = ""
    nodes: int = 1
    gpus_per_node: int = 0
    node_folder: str = ""
    python: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()
    network_interface: str = ""
    idle_max_busy_cores: float = 1e9
    idle_wait_seconds: float = 0.0
    fingerprint: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> RunPaths:
        """Where the evidence goes."""
        return RunPaths(Path(self.folder))

    @property
    def folder_there(self) -> str:
        """The run's folder on its nodes; it has the same name as here, for the logs of ranks say it."""
        return f"{self.node_folder}/{Path(self.folder).name}" if self.node_folder else self.folder

    def as_json(self) -> str:
        """Return the text that is kept as evidence and shown in the notebook; ``files`` lie beside it.

        What may be secret is not in it: whoever executes it must have these variables in its own environment.
        """
        values = asdict(self) | {"environment": recorded_environment(self.environment)}
        del values["files"]
        return json.dumps(values, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Submission":
        """Return what ``as_json`` wrote, without its files."""
        values = _tuples(json.loads(text))
        values["commands"] = tuple(Command(**_tuples(command)) for command in values["commands"])
        return cls(**values)


@dataclass(frozen=True)
class Place:
    """How a node is reached: ``reach`` is what a command is put behind to run there, nothing for this machine.

    ``shell``: a shell at the other end reads the words again. ``address`` is what other nodes know it by; left
    empty, the node is asked.
    """

    name: str = ""
    reach: tuple[str, ...] = ()
    python: str = sys.executable
    shell: bool = False
    address: str = ""

    @property
    def title(self) -> str:
        """Its name, for messages; this machine may have none."""
        return self.name or "this machine"

    def argv(self, *words: str) -> tuple[str, ...]:
        """Return the argv that runs the node's Python with these words there."""
        return self.command(self.python, *words)

    def command(self, *words: str) -> tuple[str, ...]:
        """Return the argv that runs a command there."""
        return (*self.reach, shlex.join(words)) if self.shell else (*self.reach, *words)

    def shell_argv(self) -> tuple[str, ...]:
        """Return what a text for a shell is put behind to be run there."""
        return self.reach if self.shell else (*self.reach, "sh", "-c")


@dataclass(frozen=True)
class Ending:
    """How the processes of a run ended.

    ``seconds`` is the life of the processes, None when nobody saw it. ``busy_cores`` are the cores that other
    processes kept busy meanwhile, on average, on the busiest node. ``nodes`` holds what each node said of itself.
    ``failed_task`` is the task whose failure is the whole reason, if one is: its log may say more than its exit code.
    """

    outcome: Outcome
    reason: str
    seconds: float | None
    exit_codes: dict[str, int | None] = field(default_factory=dict)
    busy_cores: float | None = None
    out_of_memory_kills: int = 0
    interrupted: bool = False
    started: str = ""
    nodes: tuple[dict[str, Any], ...] = ()
    failed_task: str = ""

    def as_json(self) -> str:
        """Return the ending as one line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Ending":
        """Return what ``as_json`` wrote."""
        values = _tuples(json.loads(text))
        return cls(**values | {"outcome": Outcome(values["outcome"])})


def this_machine(cluster: Cluster) -> Place:
    """Return the place to ask for libraries where the cluster's Python is also the Python here."""
    return Place()


def as_it_is(cluster: Cluster, place: Place, argv: Sequence[str]) -> Sequence[str]:
    """Return a command as it is typed on this machine."""
    return argv


def nothing_to_cancel(folder: Path, cluster: Cluster) -> None:
    """Leave everything as it is: no work of this launcher outlives the one who executes it."""


#: Runs submissions, each within so many seconds; yields one ending per submission, in order.
Execute = Callable[[Sequence[Submission], Cluster, float], Generator[Ending]]


@dataclass(frozen=True)
class Launcher:
    """One place to run.

    ``render(job, cluster, folder)`` is pure. ``places(cluster)`` are its nodes, in order. ``cancel(folder, cluster)``
    ends what works for the configuration of this folder. ``asked(cluster)`` is where a plan asks for libraries whose
    Python is not on this machine.

    ``commands`` must be on this machine, and ``commands_from`` says what brings them. ``by_hand(cluster, place, argv)``
    is how a person would run a command on a node. ``peers_by_ssh``: the first node reaches the others by ssh, so it
    needs a key of its own.
    """

    name: str
    render: Callable[[Job, Cluster, Path], Submission]
    execute: Execute
    places: Callable[[Cluster], Sequence[Place]]
    cancel: Callable[[Path, Cluster], None] = nothing_to_cancel
    asked: Callable[[Cluster], Place] = this_machine
    commands: tuple[str, ...] = ()
    commands_from: str = ""
    by_hand: Callable[[Cluster, Place, Sequence[str]], Sequence[str]] = as_it_is
    peers_by_ssh: bool = False


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
