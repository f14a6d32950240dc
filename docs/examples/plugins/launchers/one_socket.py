"""This machine, with all processes of a run on one CPU socket."""

from pathlib import Path

from dlperf_study.machines.check.nodes import NodeAccess, nodes_check
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers._base import Launcher
from dlperf_study.machines.node_agent.coordinator import in_turn
from dlperf_study.machines.node_agent.submission import Node, Submission, render_submission
from dlperf_study.study.job import Job


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, each with its log; starts nothing."""
    return render_submission("one_socket", job, cluster, folder)


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return this machine; a command there is run by numactl."""
    return (Node(reach=("numactl", "--cpunodebind=0", "--membind=0"), python=cluster.agent_python),)


ACCESS = NodeAccess("one_socket", commands=("numactl",), commands_from="install numactl")
LAUNCHER = Launcher(
    *("one_socket", render, in_turn(nodes), nodes),
    check=nodes_check(nodes, ACCESS),
    is_this_machine=True,
)
