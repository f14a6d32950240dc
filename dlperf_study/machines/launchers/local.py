"""This machine: every task is a process here, under a node agent."""

from pathlib import Path

from dlperf_study.core import cpu_group
from dlperf_study.machines.check.nodes import NodeAccess, nodes_check
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers._base import Launcher
from dlperf_study.machines.node_agent.coordinator import in_turn
from dlperf_study.machines.node_agent.submission import Node, Submission, render_submission
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, each with its log; starts nothing."""
    return render_submission("local", job, cluster, folder)


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return this machine."""
    return (Node(python=cluster.agent_python),)


def cpu_limit_obstacle(cluster: Cluster, configuration: Configuration) -> str:
    """Return why this machine can't limit cores, or nothing."""
    return cpu_group.obstacle(configuration.cpu_limit)


execute = in_turn(nodes)
check = nodes_check(nodes, NodeAccess("local"))
LAUNCHER = Launcher(
    *("local", render, execute, nodes, check),
    cpu_limit_obstacle=cpu_limit_obstacle,
    is_this_machine=True,
)
