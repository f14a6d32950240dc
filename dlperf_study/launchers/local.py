"""This machine: every task is a process here, under a guard."""

from pathlib import Path

from dlperf_study.check.reachability import NodeAccess, nodes_check
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.coordinator import in_turn
from dlperf_study.guard.submission import Node, Submission, submission_of
from dlperf_study.launchers._base import Launcher
from dlperf_study.study.job import Job


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, each with its log; starts nothing."""
    return submission_of("local", job, cluster, folder)


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return this machine."""
    return (Node(python=cluster.guard_python),)


execute = in_turn(nodes)
check = nodes_check(nodes, NodeAccess("local"))
LAUNCHER = Launcher("local", render, execute, nodes, check, is_this_machine=True)
