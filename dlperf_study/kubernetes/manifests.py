"""The objects of one run: a Job per node and role, and what their pods need to find and to trust each other. Pure.

The first object owns all others: when it goes, by hand, by its time to live or with its run, Kubernetes deletes them.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import yaml

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.submission import Submission
from dlperf_study.kubernetes.pods import RUN_LABEL, Manifest, Pod, PodRole, check_specification, specification

#: How long a finished run stays that nobody deletes, because its driver died.
KEPT_SECONDS = 3600
#: One attempt only: a second one would be a different run.
ONE_ATTEMPT = {"backoffLimit": 0, "ttlSecondsAfterFinished": KEPT_SECONDS}
NAME_LABELS = {"app.kubernetes.io/name": "dlperf-study", "app.kubernetes.io/managed-by": "dlperf-study"}
CONFIGURATION_LABEL = "dlperf-study/configuration"


def run_manifests(submission: Submission, pods: Sequence[Pod], cluster: Cluster, image: str) -> list[Manifest]:
    """Return the objects of a run with one Job per pod."""
    labels = run_labels(submission)
    run = labels[RUN_LABEL]
    jobs = []
    for pod in pods:
        template = _template(labels, pod, cluster, image)
        spec = {**ONE_ATTEMPT, "template": template}
        jobs.append(_manifest("batch/v1", "Job", f"{run}-{pod.name}", template["metadata"]["labels"], spec=spec))
    # Gives each pod a name in the cluster's DNS, at once and not only when it is ready.
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {RUN_LABEL: run}}
    return [*jobs, _manifest("v1", "Service", run, labels, spec=service), _secret(labels)]


def mpi_manifests(submission: Submission, nodes: int, cluster: Cluster, image: str) -> list[Manifest]:
    """Return the objects of a run as an MPIJob: a launcher that coordinates, and one worker per node.

    The operator names its pods and creates their Service.
    """
    labels = run_labels(submission)
    launcher = _template(labels, Pod(PodRole.LAUNCHER, coordinates=True), cluster, image)
    worker = _template(labels, Pod(PodRole.TRAINER), cluster, image)
    for template in (launcher, worker):
        del template["spec"]["hostname"], template["spec"]["subdomain"]
    spec = {
        "slotsPerWorker": cluster.devices_per_node,
        "launcherCreationPolicy": "AtStartup",
        "runPolicy": {"cleanPodPolicy": "None", **ONE_ATTEMPT},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
            "Worker": {"replicas": nodes, "restartPolicy": "Never", "template": worker},
        },
    }
    mpi_job = _manifest("kubeflow.org/v2beta1", "MPIJob", labels[RUN_LABEL], labels, spec=spec)
    return [mpi_job, _secret(labels)]


def check_job(name: str, cluster: Cluster, image: str) -> Manifest:
    """Return a Job that prints what an image has installed."""
    labels = NAME_LABELS | {RUN_LABEL: name}
    template = {"metadata": {"labels": labels}, "spec": check_specification(name, cluster, image)}
    spec = {**ONE_ATTEMPT, "activeDeadlineSeconds": KEPT_SECONDS, "template": template}
    return _manifest("batch/v1", "Job", name, labels, spec=spec)


def pod_names(manifests: Sequence[Manifest]) -> tuple[str, ...]:
    """Return the names in the cluster's DNS of the pods of trainers and servers, in the order of the run's nodes."""
    names = []
    for manifest in manifests:
        if manifest["kind"] == "Job":
            pod = manifest["spec"]["template"]["spec"]
            names.append(f"{pod['hostname']}.{pod['subdomain']}")
        if manifest["kind"] == "MPIJob":
            # So the operator names its workers and their Service.
            job = manifest["metadata"]["name"]
            workers = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
            names.extend(f"{job}-worker-{index}.{job}" for index in range(workers))
    return tuple(names)


def as_yaml(manifests: Sequence[Manifest]) -> str:
    """Return manifests as kubectl takes them."""
    # By way of JSON: YAML would write a mapping that two manifests share as a reference.
    documents = [yaml.safe_dump(json.loads(json.dumps(each)), sort_keys=False, width=120) for each in manifests]
    return "---\n".join(documents)


def run_labels(submission: Submission) -> dict[str, str]:
    """Return the labels of all objects of a run: the same for the same commands in the same folder."""
    commands = json.dumps([submission.folder, *(asdict(command) for command in submission.commands)])
    configuration = configuration_label(str(submission.paths.home.folder))
    return NAME_LABELS | {RUN_LABEL: f"dlperf-{_digest(commands)}", CONFIGURATION_LABEL: configuration}


def configuration_label(folder: str) -> str:
    """Return the label of all runs of a configuration, given its folder."""
    return _digest(folder)


def _template(labels: dict[str, str], pod: Pod, cluster: Cluster, image: str) -> Manifest:
    spec = specification(labels[RUN_LABEL], pod, cluster, image)
    return {"metadata": {"labels": labels | pod.labels}, "spec": spec}


def _secret(labels: dict[str, str]) -> Manifest:
    """Return what the pods of a run mount besides their own folders; the values are filled in when it starts."""
    files = {"token": "{token}", "request.json": "{request}", "environment.json": "{environment}"}
    return _manifest("v1", "Secret", labels[RUN_LABEL], labels, stringData=files)


def _manifest(version: str, kind: str, name: str, labels: dict[str, str], **content: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}, **content}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
