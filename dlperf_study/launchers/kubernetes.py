"""Kubernetes: a Job per node and role, or an MPIJob for Horovod where its operator is; no shared folder.

One pod conducts the run over the guards in the others, and prints the evidence into its log.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.environment_variables import travelling_environment
from dlperf_study.cluster.software import measuring_code, software
from dlperf_study.errors import StudyFileError
from dlperf_study.guard.submission import Node, Submission, fill, submission_of
from dlperf_study.kubernetes.api import Api
from dlperf_study.kubernetes.coordinate import Order
from dlperf_study.kubernetes.manifests import (
    CONFIGURATION_LABEL,
    as_yaml,
    configuration_label,
    mpi_objects_of,
    objects_of,
)
from dlperf_study.kubernetes.pods import NODE_FOLDER, Manifest, Pod, PodRole, pods_of
from dlperf_study.kubernetes.run import Run, clean_up
from dlperf_study.launchers._base import Launcher
from dlperf_study.study.job import Job, JobResult, Task

MANIFESTS = "kubernetes.yaml"


def render(job: Job, cluster: Cluster, folder: Path) -> Submission:
    """Return the commands of a job, numbered by pod, and the manifests of these pods.

    Raises StudyFileError when the cluster file names no image for the framework.
    """
    image = cluster.kubernetes.image_for(job.framework)
    if not image:
        raise StudyFileError(f"cluster {cluster.name}: kubernetes.images has none for {job.framework}, and no default")
    pods = pods_of(job)
    submission = submission_of("kubernetes", _by_pod(job, pods), cluster, folder, f"{NODE_FOLDER}/run")
    as_mpi_job = cluster.kubernetes.mpi_operator and job.starts_other_nodes and len(pods) > 1
    objects = (
        mpi_objects_of(submission, job.nodes, cluster, image)
        if as_mpi_job
        else objects_of(submission, pods, cluster, image)
    )
    return replace(submission, files={MANIFESTS: as_yaml(objects)})


def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
    """Run one after another to its end, within ``timeout_seconds`` each; leaves no object behind.

    A run that an earlier driver started and did not see the end of is followed.
    """
    api = Api(cluster.kubernetes)
    for submission in submissions:
        yield _run(submission, cluster, timeout_seconds, api).perform()


def nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Return nothing: a pod can't be reached before there is a run."""
    return ()


def cancel(folder: Path, cluster: Cluster) -> None:
    """Delete what a driver that was killed left running for the configuration of this folder."""
    clean_up(Api(cluster.kubernetes), f"{CONFIGURATION_LABEL}={configuration_label(str(folder))}")


def _run(submission: Submission, cluster: Cluster, timeout_seconds: float, api: Api) -> Run:
    objects = list(yaml.safe_load_all(submission.files[MANIFESTS]))
    shell = travelling_environment(os.environ, submission.pass_environment)
    order = Order(
        replace(submission, environment=shell | dict(submission.environment)),
        pods=tuple(_addresses(objects)),
        conductor_trains=objects[0]["kind"] == "Job",
        code=measuring_code(),
        libraries=software(),
        timeout_seconds=timeout_seconds,
        start_within_seconds=cluster.kubernetes.start_within_seconds,
    )
    return Run(api, objects, order)


def _addresses(objects: Sequence[Manifest]) -> Iterator[str]:
    """Yield the names under which the pods of a run find each other, in the order of its nodes."""
    for made in objects:
        if made["kind"] == "Job":
            pod = made["spec"]["template"]["spec"]
            yield f"{pod['hostname']}.{pod['subdomain']}"
        if made["kind"] == "MPIJob":
            # So the operator names its workers and their Service.
            name, workers = made["metadata"]["name"], made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
            yield from (f"{name}-worker-{k}.{name}" for k in range(workers))


def _by_pod(job: Job, pods: Sequence[Pod]) -> Job:
    """Return a job whose nodes are pods: servers don't live where the trainers of their node do."""
    numbers = {(str(pod.role), pod.node): number for number, pod in enumerate(pods)}
    servers = {f"server_host_{p.node}": f"{{host_{n}}}" for n, p in enumerate(pods) if p.role is PodRole.SERVER}

    def moved(task: Task) -> Task:
        number = numbers[str(task.role), task.node]
        values = servers | {f"interface_{task.node}": f"{{interface_{number}}}"}
        environment = {name: fill(value, values) for name, value in task.environment.items()}
        return replace(task, node=number, argv=tuple(fill(word, values) for word in task.argv), environment=environment)

    return replace(job, nodes=len(pods), tasks=tuple(map(moved, job.tasks)))


LAUNCHER = Launcher("kubernetes", render, execute, nodes, cancel)
