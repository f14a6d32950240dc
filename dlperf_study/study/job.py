"""What must be started for one run: pure data between the frameworks and the launchers."""

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Role(StrEnum):
    """What a task does for the run."""

    TRAINER = "trainer"
    SERVER = "server"


@dataclass(frozen=True)
class Task:
    """One command on one node.

    A run is over when every trainer has exited; servers are then stopped.
    In an argument or a value ``{run}`` stands for the run's folder on that node, ``{host_N}`` for the address
    of node N, ``{server_host_N}`` for that of its servers, ``{interface_N}`` for the network interface with the
    address, ``{devices_N}`` for the GPUs that its ranks are shown, as a list for CUDA, and ``{port_N}`` for the N-th
    of ``Job.ports`` free ports; the launcher fills them in. The first argument is the Python that runs the task.
    """

    name: str
    role: Role
    node: int
    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """All tasks of one run, on how many nodes, and how many free ports they share.

    ``rank_output`` is a regular expression for the files below ``{run}/scratch`` that hold what single ranks
    printed; the texts of its groups name the log such a file is kept as. Everything else there is thrown away.
    ``gpus_per_node``: how many GPUs the ranks of a node share.
    ``framework`` is the name of the one whose job it is, where a launcher has to know.
    """

    tasks: tuple[Task, ...]
    nodes: int = 1
    ports: int = 0
    rank_output: str = ""
    gpus_per_node: int = 0
    framework: str = ""

    def with_environment(self, variables: dict[str, str]) -> "Job":
        """Return this job with further variables for every task."""
        return replace(self, tasks=tuple(replace(t, environment=t.environment | variables) for t in self.tasks))
