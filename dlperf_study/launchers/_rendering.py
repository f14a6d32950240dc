"""From a job to a submission: what every launcher that has guards renders alike. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dlperf_study.launchers._base import Command, Submission
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.job import Job, Task


def submission_of(launcher: str, job: Job, cluster: Cluster, folder: Path, node_folder: str = "") -> Submission:
    """Return the commands of a job, each with its log.

    ``node_folder`` is where nodes write that don't share files with this machine.
    """
    bare = Submission(launcher, str(folder), (), job.ports, nodes=job.nodes, node_folder=node_folder)
    return replace(
        bare,
        commands=tuple(_command(task, cluster, bare.folder_there) for task in job.tasks),
        rank_output=job.rank_output,
        gpus_per_node=job.gpus_per_node,
        python=(*cluster.container, job.tasks[0].argv[0]),
        environment=dict(cluster.environment),
        pass_environment=cluster.pass_environment,
        network_interface=cluster.network_interface,
        idle_max_busy_cores=cluster.idle_max_busy_cores,
        idle_wait_seconds=cluster.idle_wait_seconds,
    )


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with ``{name}`` replaced by its value, for each name."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _command(task: Task, cluster: Cluster, folder: str) -> Command:
    def filled(text: str) -> str:
        # Servers have the address of their node; only where each has one of its own is it another.
        return fill(text, {"run": folder}).replace("{server_host_", "{host_")

    argv = (*cluster.container, *map(filled, task.argv))
    environment = {name: filled(value) for name, value in task.environment.items()}
    return Command(task.name, task.role, argv, environment, f"{folder}/{task.name}.log", task.node)
