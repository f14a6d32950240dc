"""What must be started for one run, when, and how it ended: pure data between the frameworks and the launchers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from dlperf_study.core.restoring import restored
from dlperf_study.study import environment_variables, gpu_support


class RunStatus(StrEnum):
    """How a run ended, as ``run.json`` has it."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    UNSUPPORTED = "unsupported"


class TaskRole(StrEnum):
    """What a task does for the run."""

    TRAINER = "trainer"
    SERVER = "server"


#: The folder below ``{run}/scratch`` with the files of a user's program.
PROGRAM_FOLDER = "program"
#: How the names of tasks begin that make batches for a rank; their role is that of a server.
PRODUCER = "producer"


@dataclass(frozen=True)
class Task:
    """One command on one node.

    A run is over when every trainer has exited; servers are then stopped.
    In an argument or a value ``{run}`` is replaced by the run's folder on that node, ``{host_N}`` by the address
    of node N, ``{server_host_N}`` by that of its servers, ``{interface_N}`` by the network interface with the
    address, ``{devices_N}`` by the GPUs that its ranks may use, as a list for CUDA, and ``{port_N}`` by the N-th
    of ``Job.ports`` free ports; the launcher does that. The first argument is the Python that runs the task, unless the
    job names another one. It starts in ``folder``, below ``{run}/scratch``.
    """

    name: str
    role: TaskRole
    node: int
    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""


@dataclass(frozen=True)
class Job:
    """All tasks of one run, their nodes and ports.

    ``rank_output`` is a regular expression for the files below ``{run}/scratch`` that hold what single ranks
    printed; its groups name the log such a file is kept as. Everything else there is deleted.
    ``gpus_per_node``: how many GPUs the ranks of a node share.
    ``starts_other_nodes``: whether the task of the first node starts the ranks of the others too, as mpirun does.
    ``framework`` is the name of the one whose job it is, where a launcher has to know.
    What nodes are asked before anything starts: ``gpu_question``, where there are GPUs; the versions of ``packages``;
    and ``requirements``, each the arguments of this project's Python that prints a line of JSON, with ``error`` if the
    node lacks something. ``libraries`` that train have their packages, of which the first that is installed has the
    version. ``variables``: which ones reach its tasks from a shell. ``python``: of which the packages are listed, if it
    is not that of the tasks.
    What nodes get before the start: ``archive``, packed files that are unpacked into ``{run}/scratch/program``, and
    ``files``, texts by name in ``{run}/scratch``, with placeholders. ``data``: paths that must exist there, each
    with the place below ``{run}/scratch/program`` at which it is linked; empty: at none.
    ``pass_environment``: names of variables that they get besides.
    """

    tasks: tuple[Task, ...]
    nodes: int = 1
    ports: int = 0
    rank_output: str = ""
    gpus_per_node: int = 0
    starts_other_nodes: bool = False
    framework: str = ""
    gpu_question: gpu_support.GpuQuestion | None = None
    variables: environment_variables.PassedVariables = environment_variables.COMMON_VARIABLES
    libraries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    requirements: tuple[tuple[str, ...], ...] = ()
    python: str = ""
    archive: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()

    def add_environment(self, variables: dict[str, str]) -> "Job":
        """Return this job with further variables for every task."""
        tasks = (replace(task, environment=task.environment | variables) for task in self.tasks)
        return replace(self, tasks=tuple(tasks))


class FrameworkFacts(Protocol):
    """What a check must know of a framework."""

    @property
    def name(self) -> str:
        """Its name in study files and cluster files."""

    @property
    def packages(self) -> tuple[str, ...]:
        """One of these must be installed."""

    @property
    def further_packages(self) -> tuple[str, ...]:
        """Their versions matter too."""

    @property
    def version_remedy(self) -> str:
        """What to do about a wrong version."""

    def version_in(self, versions: Mapping[str, str]) -> str | None:
        """Return the version of its library among installed packages, or None."""

    @property
    def wrong_version(self) -> Callable[[str], str]:
        """Why a version of its library can't train; empty if it can."""


@dataclass(frozen=True)
class ProgramFacts:
    """What a check must know of all that can train; see ``Job``.

    ``gpu_questions`` are by framework. ``made_image_datasets`` are the folders of images that this project makes
    itself, and ``classes_question`` the arguments by which this project's Python prints how many classes a folder has.
    """

    frameworks: Sequence[FrameworkFacts] = ()
    gpu_questions: Mapping[str, gpu_support.GpuQuestion] = field(default_factory=dict)
    variables: environment_variables.PassedVariables = environment_variables.COMMON_VARIABLES
    libraries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    made_image_datasets: Mapping[str, str] = field(default_factory=dict)
    classes_question: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobResult:
    """How the processes of a run ended.

    ``seconds`` is how long the processes ran, None if unknown. ``busy_cores`` are the cores that other processes kept
    busy meanwhile, on average, on the busiest node. ``nodes`` holds what each node reported. ``failed_task`` is the
    task whose failure is the whole reason, if one is: its log may say more than its exit code.
    """

    status: RunStatus
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
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "JobResult":
        """Return what ``as_json`` wrote."""
        return restored(cls, json.loads(text))


#: Every configuration once a round, shuffled within each; or all runs of a configuration, then those of the next.
INTERLEAVED, SEQUENTIAL = "interleaved", "sequential"
#: The order of a run that no controller of a study started.
BY_HAND = "by hand"


@dataclass(frozen=True)
class Turn:
    """When a run is measured among those of its study.

    ``round`` and ``position`` are from 1. Runs of the same round were measured in turn, each configuration once, in
    random order: so they saw the same machine, and a ratio of two of them holds no drift. Both are None in blocks, by
    hand, and for a run that was measured after its round: it shares a round with none.
    """

    order: str = BY_HAND
    round: int | None = None
    position: int | None = None
