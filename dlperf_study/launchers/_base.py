"""What a launcher takes and gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.submission import Execute, Node, Submission
from dlperf_study.study.job import Job


def this_machine(cluster: Cluster) -> Node:
    """Return the node to ask for libraries where the cluster's Python is also the Python here."""
    return Node()


def as_it_is(cluster: Cluster, node: Node, argv: Sequence[str]) -> Sequence[str]:
    """Return a command as it is typed on this machine."""
    return argv


def nothing_to_cancel(folder: Path, cluster: Cluster) -> None:
    """Leave everything as it is: no work of this launcher outlives the one who executes it."""


@dataclass(frozen=True)
class Launcher:
    """One node to run.

    ``render(job, cluster, folder)`` is pure. ``nodes(cluster)`` are its nodes, in order. ``cancel(folder, cluster)``
    ends what works for the configuration of this folder. ``representative_node(cluster)`` is the node that a plan asks
    for installed packages, where the Python that trains is not on this machine.

    ``commands`` must be on this machine, and ``commands_from`` says what brings them. ``by_hand(cluster, node, argv)``
    is how a person would run a command on a node. ``peers_by_ssh``: the first node reaches the others by ssh, so it
    needs a key of its own.
    """

    name: str
    render: Callable[[Job, Cluster, Path], Submission]
    execute: Execute
    nodes: Callable[[Cluster], Sequence[Node]]
    cancel: Callable[[Path, Cluster], None] = nothing_to_cancel
    representative_node: Callable[[Cluster], Node] = this_machine
    commands: tuple[str, ...] = ()
    commands_from: str = ""
    by_hand: Callable[[Cluster, Node, Sequence[str]], Sequence[str]] = as_it_is
    peers_by_ssh: bool = False
