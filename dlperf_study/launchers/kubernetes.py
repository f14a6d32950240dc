"""Kubernetes: a Job per node and role, or an MPIJob for Horovod where its operator is; no shared folder.

One pod coordinates the guards in the others, and prints the evidence into its log.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.environment_variables import travelling_environment
from dlperf_study.cluster.software import measuring_code, software
from dlperf_study.errors import StudyFileError
from dlperf_study.guard.submission import Node, Submission, fill, submission_of
from dlperf_study.kubernetes.api import Api
from dlperf_study.kubernetes.check import check_kubernetes
from dlperf_study.kubernetes.coordinator_pod import RunRequest
from dlperf_study.kubernetes.manifests import (
    CONFIGURATION_LABEL,
    as_yaml,
    configuration_label,
    mpi_manifests,
    pod_names,
    run_manifests,
)
from dlperf_study.kubernetes.pods import NODE_FOLDER, Pod, PodRole, pods_of
from dlperf_study.kubernetes.run import KubernetesRun, delete_objects
from dlperf_study.kubernetes.settings import KubernetesSettings
from dlperf_study.launchers._base import Launcher, Queue
from dlperf_study.study.job import Job, JobResult

MANIFESTS = "kubernetes.yaml"


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, numbered by pod, and the manifests of these pods.

    Raises StudyFileError when the cluster file names no image for the framework.
    """
    image = cluster.settings.image_for(job.framework)
    if not image:
        raise StudyFileError(f"cluster {cluster.name}: kubernetes.images has none for {job.framework}, and no default")
    pods = pods_of(job)
    submission = submission_of("kubernetes", _with_pods_as_nodes(job, pods), cluster, folder, f"{NODE_FOLDER}/run")
    if cluster.settings.mpi_operator and job.starts_other_nodes and len(pods) > 1:
        manifests = mpi_manifests(submission, job.nodes, cluster, image)
    else:
        manifests = run_manifests(submission, pods, cluster, image)
    return replace(submission, files={MANIFESTS: as_yaml(manifests)})


def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
    """Run one after another to its end, within ``timeout_seconds`` each; leaves no object behind.

    A run that an earlier driver started and did not see the end of is followed.
    """
    api = Api(cluster.settings)
    for submission in submissions:
        # Exactly the manifests that the evidence shows are created.
        manifests = list(yaml.safe_load_all(submission.files[MANIFESTS]))
        environment = travelling_environment(os.environ, submission.pass_environment) | dict(submission.environment)
        request = RunRequest(
            replace(submission, environment=environment),
            pods=pod_names(manifests),
            separate_coordinator=manifests[0]["kind"] == "MPIJob",
            code=measuring_code(),
            libraries=software(),
            timeout_seconds=timeout_seconds,
            start_within_seconds=cluster.settings.start_within_seconds,
        )
        yield KubernetesRun(api, manifests, request).execute()


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return nothing: a pod can't be reached before there is a run."""
    return ()


def queue(cluster: Cluster) -> Queue:
    """Return the limits of the queue: a pod may wait for a node and its image."""
    settings: KubernetesSettings = cluster.settings
    return Queue(settings.start_within_seconds)


def images(cluster: Cluster) -> Mapping[str, str]:
    """Return the image of each framework."""
    settings: KubernetesSettings = cluster.settings
    return settings.images


def cancel(folder: Path, cluster: Cluster) -> None:
    """Delete what a driver that was killed left running for the configuration of this folder."""
    delete_objects(Api(cluster.settings), f"{CONFIGURATION_LABEL}={configuration_label(str(folder))}")


def _with_pods_as_nodes(job: Job, pods: Sequence[Pod]) -> Job:
    """Return a job whose nodes are pods: servers have pods of their own, also where trainers share their node."""
    indices = {(pod.role.value, pod.node): index for index, pod in enumerate(pods)}
    values = {}
    for index, pod in enumerate(pods):
        if pod.role is PodRole.SERVER:
            values[f"server_host_{pod.node}"] = f"{{host_{index}}}"
    tasks = []
    for task in job.tasks:
        index = indices[task.role.value, task.node]
        task_values = values | {f"interface_{task.node}": f"{{interface_{index}}}"}
        environment = {name: fill(value, task_values) for name, value in task.environment.items()}
        argv = tuple(fill(argument, task_values) for argument in task.argv)
        tasks.append(replace(task, node=index, argv=argv, environment=environment))
    return replace(job, nodes=len(pods), tasks=tuple(tasks))


LAUNCHER = Launcher(
    *("kubernetes", render, execute, nodes, check_kubernetes),
    cancel=cancel,
    queue=queue,
    images=images,
    settings=KubernetesSettings,
    shared_files=False,
)
