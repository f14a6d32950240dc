"""What must be started for one run, and how it ended: pure data between the frameworks and the launchers."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

#: Which GPUs CUDA shows a process: indices, or the beginnings of UUIDs.
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
#: In which order they have their indices; nvidia-smi and queues count by PCI bus, CUDA left alone by speed.
DEVICE_ORDER, PCI_BUS_ORDER = "CUDA_DEVICE_ORDER", "PCI_BUS_ID"


class Outcome(StrEnum):
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


#: How the names of tasks begin that make batches for a rank; their role is that of a server.
PRODUCER = "producer"


@dataclass(frozen=True)
class Task:
    """One command on one node.

    A run is over when every trainer has exited; servers are then stopped.
    In an argument or a value ``{run}`` is replaced by the run's folder on that node, ``{host_N}`` by the address
    of node N, ``{server_host_N}`` by that of its servers, ``{interface_N}`` by the network interface with the
    address, ``{devices_N}`` by the GPUs that its ranks may use, as a list for CUDA, and ``{port_N}`` by the N-th
    of ``Job.ports`` free ports; the launcher does that. The first argument is the Python that runs the task.
    """

    name: str
    role: TaskRole
    node: int
    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """All tasks of one run, on how many nodes, and how many free ports they share.

    ``rank_output`` is a regular expression for the files below ``{run}/scratch`` that hold what single ranks
    printed; its groups name the log such a file is kept as. Everything else there is deleted.
    ``gpus_per_node``: how many GPUs the ranks of a node share.
    ``starts_other_nodes``: whether the task of the first node starts the ranks of the others too, as mpirun does.
    ``framework`` is the name of the one whose job it is, where a launcher has to know.
    """

    tasks: tuple[Task, ...]
    nodes: int = 1
    ports: int = 0
    rank_output: str = ""
    gpus_per_node: int = 0
    starts_other_nodes: bool = False
    framework: str = ""

    def with_environment(self, variables: dict[str, str]) -> "Job":
        """Return this job with further variables for every task."""
        tasks = (replace(task, environment=task.environment | variables) for task in self.tasks)
        return replace(self, tasks=tuple(tasks))


@dataclass(frozen=True)
class JobResult:
    """How the processes of a run ended.

    ``seconds`` is how long the processes ran, None if unknown. ``busy_cores`` are the cores that other processes kept
    busy meanwhile, on average, on the busiest node. ``nodes`` holds what each node reported. ``failed_task`` is the
    task whose failure is the whole reason, if one is: its log may say more than its exit code.
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
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "JobResult":
        """Return what ``as_json`` wrote."""
        values = tuples_of_lists(json.loads(text))
        return cls(**values | {"outcome": Outcome(values["outcome"])})


def tuples_of_lists(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values read from JSON with tuples where it has lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
