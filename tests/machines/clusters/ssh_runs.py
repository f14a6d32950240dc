"""Runs over ssh in which shell scripts take the place of training."""

from pathlib import Path
from typing import Any

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers import ssh as launcher
from dlperf_study.machines.node_agent.submission import Command, Submission
from dlperf_study.study.job import JobResult
from tests.machines import submissions
from tests.machines.clusters.ssh_hosts import SshHosts

#: A child in a session of its own, which the death of its parent does not reach.
DEEP = "setsid sleep 600 & touch started; sleep 600"


def scripts(ssh: SshHosts, folder: Path, *of_nodes: str, **changes: Any) -> Submission:
    """Return one shell script per node."""
    there = f"{ssh.work}/run-{{unique}}"
    commands = tuple(
        Command(f"node-{k}", "trainer", ("sh", "-c", script), {}, f"{there}/{folder.name}/node-{k}.log", k)
        for k, script in enumerate(of_nodes)
    )
    return submissions.submission(
        "ssh", str(folder), commands, **{"ports": 0, "nodes": len(of_nodes), "node_folder": there, **changes}
    )


def execute(asked: Submission, cluster: Cluster, timeout_seconds: float = 60) -> JobResult:
    [result] = launcher.execute([asked], cluster, timeout_seconds)
    return result
