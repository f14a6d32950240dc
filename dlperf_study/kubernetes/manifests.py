"""The objects of one run: a Job per node and role, and what their pods need to find and to trust each other. Pure.

The first object owns all the rest: when it goes, by hand, by its time to live or with its run, Kubernetes deletes them.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.submission import Submission
from dlperf_study.kubernetes.pods import RUN_LABEL, Manifest, Pod, PodRole, check_specification, specification

#: What is only known when the run starts.
ORDER, TOKEN, ENVIRONMENT = "{order}", "{token}", "{environment}"
#: How long a finished run stays that nobody deletes, because its driver died.
KEPT_SECONDS = 3600
NAME_LABELS = {"app.kubernetes.io/name": "dlperf-study", "app.kubernetes.io/managed-by": "dlperf-study"}
CONFIGURATION_LABEL = "dlperf-study/configuration"
#: How a Job is tried, and how long it stays: a second attempt would be another run.
ONCE = {"backoffLimit": 0, "ttlSecondsAfterFinished": KEPT_SECONDS}


@dataclass(frozen=True)
class Naming:
    """What all objects of a run are called: the same for the same commands in the same folder."""

    run: str
    configuration: str

    @classmethod
    def of(cls, submission: Submission) -> "Naming":
        """Return the names of a submission's objects."""
        commands = repr((submission.folder, [asdict(command) for command in submission.commands]))
        return cls(f"dlperf-{_digest(commands)}", configuration_label(str(submission.paths.home.folder)))

    @property
    def labels(self) -> dict[str, str]:
        """What every object carries."""
        return NAME_LABELS | {RUN_LABEL: self.run, CONFIGURATION_LABEL: self.configuration}


def configuration_label(folder: str) -> str:
    """Return by what all runs of a configuration are found, given its folder."""
    return _digest(folder)


def objects_of(submission: Submission, pods: Sequence[Pod], cluster: Cluster, image: str) -> list[Manifest]:
    """Return the manifests of a run of one Job per pod."""
    naming = Naming.of(submission)
    jobs = [_job(naming, f"{naming.run}-{pod.name}", pod, cluster, image) for pod in pods]
    return [*jobs, _object("v1", "Service", naming, spec=_service(naming)), *_mounted(naming)]


def mpi_objects_of(submission: Submission, nodes: int, cluster: Cluster, image: str) -> list[Manifest]:
    """Return the manifests of a run as an MPIJob: a launcher that conducts, and one worker per node.

    The operator names its pods and makes their Service.
    """
    naming = Naming.of(submission)
    launcher = _replicas(naming, Pod(PodRole.LAUNCHER, conducts=True), 1, cluster, image)
    workers = _replicas(naming, Pod(PodRole.TRAINER), nodes, cluster, image)
    specified = {
        "slotsPerWorker": cluster.devices_per_node,
        "launcherCreationPolicy": "AtStartup",
        "runPolicy": {"cleanPodPolicy": "None", **ONCE},
        "mpiReplicaSpecs": {"Launcher": launcher, "Worker": workers},
    }
    return [_object("kubeflow.org/v2beta1", "MPIJob", naming, spec=specified), *_mounted(naming)]


def check_job(name: str, cluster: Cluster, image: str) -> Manifest:
    """Return a Job that says what an image holds."""
    labels = NAME_LABELS | {RUN_LABEL: name}
    template = {"metadata": {"labels": labels}, "spec": check_specification(name, cluster, image)}
    spec = {**ONCE, "activeDeadlineSeconds": KEPT_SECONDS, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


def as_yaml(objects: Sequence[Manifest]) -> str:
    """Return manifests as kubectl takes them."""
    # By way of JSON: what two places share would be written as a reference.
    return "---\n".join(yaml.safe_dump(json.loads(json.dumps(made)), sort_keys=False, width=120) for made in objects)


def _object(version: str, kind: str, naming: Naming, name: str = "", **content: Any) -> Manifest:
    metadata = {"name": name or naming.run, "labels": naming.labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def _mounted(naming: Naming) -> tuple[Manifest, Manifest]:
    """Return what the pods of a run mount, besides their own folders."""
    return (
        _object("v1", "ConfigMap", naming, data={"order.json": ORDER}),
        _object("v1", "Secret", naming, stringData={"token": TOKEN, "environment.json": ENVIRONMENT}),
    )


def _service(naming: Naming) -> Manifest:
    """Return what gives each pod a name in the cluster's DNS, at once and not only when it is ready."""
    return {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {RUN_LABEL: naming.run}}


def _job(naming: Naming, name: str, pod: Pod, cluster: Cluster, image: str) -> Manifest:
    template = _template(naming, pod, cluster, image)
    job = _object("batch/v1", "Job", naming, name, spec={**ONCE, "template": template})
    job["metadata"]["labels"] = template["metadata"]["labels"]
    return job


def _replicas(naming: Naming, pod: Pod, count: int, cluster: Cluster, image: str) -> Manifest:
    """Return pods as an MPIJob has them: the operator gives them their host names."""
    template = _template(naming, pod, cluster, image)
    for name in ("hostname", "subdomain"):
        del template["spec"][name]
    return {"replicas": count, "restartPolicy": "Never", "template": template}


def _template(naming: Naming, pod: Pod, cluster: Cluster, image: str) -> Manifest:
    labels = naming.labels | pod.labels
    return {"metadata": {"labels": labels}, "spec": specification(naming.run, pod, cluster, image)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
