"""Hosts that need an ssh server and the environment of this project, nothing else."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from dlperf_study.machines.check.nodes import NodeAccess, nodes_check
from dlperf_study.machines.cluster import Cluster, sections
from dlperf_study.machines.launchers._base import Launcher
from dlperf_study.machines.node_agent.coordinator import in_turn
from dlperf_study.machines.node_agent.submission import Node, Submission, render_submission
from dlperf_study.study.job import Job
from dlperf_study.study.validation import Section

#: Never prompt, notice a lost host, and do not live on in a shared connection.
OPTIONS = (
    *("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"),
    *("ControlPath=none", "ForwardX11=no", "ClearAllForwardings=yes", "LogLevel=ERROR"),
)
#: Where nodes without shared files write, unless the cluster file names a folder.
WORK_FOLDER = "/tmp"


class SshSettings(Section):
    """How hosts are reached; only with launcher ssh."""

    config_file: sections.FilePath = Field(
        default="", description="configuration of ssh, from this file's folder; left out: yours"
    )


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, each with its log; starts nothing."""
    node_folder = f"{cluster.work_folder or WORK_FOLDER}/dlperf_study-{{unique}}"
    return render_submission("ssh", job, cluster, folder, "" if cluster.shared_files else node_folder)


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return the hosts, in the order of the cluster file."""
    options = [argument for option in OPTIONS for argument in ("-o", option)]
    return tuple(
        Node(host, (*_ssh(cluster), *options, host), cluster.agent_python, shell=True) for host in cluster.hosts
    )


def first_host(cluster: Cluster) -> Node:
    """Return the first host: all hosts must have the same installed packages."""
    return nodes(cluster)[0]


def by_hand(cluster: Cluster, node: Node, argv: Sequence[str]) -> Sequence[str]:
    """Return how a person runs a command on a host."""
    return (*_ssh(cluster), node.name, shlex.join(argv))


def _ssh(cluster: Cluster) -> tuple[str, ...]:
    settings: SshSettings = cluster.settings
    if settings.config_file:
        return ("ssh", "-F", settings.config_file)
    return ("ssh",)


ACCESS = NodeAccess(
    "ssh",
    commands=("ssh",),
    commands_from="install an ssh client (openssh-client)",
    by_hand=by_hand,
    peers_by_ssh=True,
)
execute = in_turn(nodes)
LAUNCHER = Launcher(
    *("ssh", render, execute, nodes),
    check=nodes_check(nodes, ACCESS),
    representative_node=first_host,
    settings=SshSettings,
    needs_hosts=True,
    shared_files=None,
)
