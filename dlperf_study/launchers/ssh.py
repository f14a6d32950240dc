"""Hosts that need an ssh server and the environment of this project, nothing else."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.coordinator import in_turn
from dlperf_study.guard.submission import Node, Submission, submission_of
from dlperf_study.launchers._base import Launcher
from dlperf_study.study.job import Job

#: Ask nobody anything, notice a host that is gone, and end with the connection instead of living on in another one.
OPTIONS = (
    *("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"),
    *("ControlPath=none", "ForwardX11=no", "ClearAllForwardings=yes", "LogLevel=ERROR"),
)
#: Where nodes write that don't share files, unless the cluster file says where.
WORK_FOLDER = "/tmp"


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, each with its log; starts nothing."""
    apart = f"{cluster.work_folder or WORK_FOLDER}/dlperf_study-{{unique}}"
    return submission_of("ssh", job, cluster, folder, "" if cluster.shared_files else apart)


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return the hosts, in the order of the cluster file."""
    return tuple(_place(cluster, host) for host in cluster.hosts)


def first_host(cluster: Cluster) -> Node:
    """Return where to ask for libraries: all hosts must have the same."""
    return nodes(cluster)[0]


def by_hand(cluster: Cluster, node: Node, argv: Sequence[str]) -> Sequence[str]:
    """Return how a person runs a command on a host, without the options that only a program needs."""
    return (*_ssh(cluster), node.name, shlex.join(argv))


def _place(cluster: Cluster, host: str) -> Node:
    options = [word for option in OPTIONS for word in ("-o", option)]
    return Node(host, (*_ssh(cluster), *options, host), cluster.guard_python, shell=True)


def _ssh(cluster: Cluster) -> tuple[str, ...]:
    return ("ssh", "-F", cluster.ssh.config_file) if cluster.ssh.config_file else ("ssh",)


execute = in_turn(nodes)
LAUNCHER = Launcher(
    *("ssh", render, execute, nodes),
    representative_node=first_host,
    commands=("ssh",),
    commands_from="install an ssh client (openssh-client)",
    by_hand=by_hand,
    peers_by_ssh=True,
)
