"""The objects of one run: a Job per node and role, its pods, and what these need to find and to trust each other. Pure.

The first object owns all others: when it goes, by hand, by its time to live or with its run, Kubernetes deletes them.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.study.job import Job, TaskRole

Manifest = dict[str, Any]

#: Where pods find the files of the run's Secret, and where they write.
SECRET_FOLDER = "/run/dlperf-study/secret"
NODE_FOLDER = "/run/dlperf-study/node"
REQUEST_FILE = f"{SECRET_FOLDER}/request.json"
CERTIFICATE_FILE = f"{SECRET_FOLDER}/certificate.pem"
ENVIRONMENT_FILE = f"{SECRET_FOLDER}/environment.json"
RUN_LABEL, ROLE_LABEL, NODE_LABEL = "dlperf-study/run", "dlperf-study/role", "dlperf-study/node"
#: On the one pod that coordinates the run.
COORDINATOR_LABEL = "dlperf-study/coordinator"
GPU = "nvidia.com/gpu"
#: How long a finished run stays that nobody deletes, because its controller died.
KEPT_SECONDS = 3600
#: One attempt only: a second one would be a different run.
ONE_ATTEMPT = {"backoffLimit": 0, "ttlSecondsAfterFinished": KEPT_SECONDS}
NAME_LABELS = {"app.kubernetes.io/name": "dlperf-study", "app.kubernetes.io/managed-by": "dlperf-study"}
CONFIGURATION_LABEL = "dlperf-study/configuration"


class PodRole(StrEnum):
    """What the pod of a node is for."""

    TRAINER = "trainer"
    SERVER = "server"
    LAUNCHER = "launcher"


@dataclass(frozen=True)
class Pod:
    """One pod of a run: trainers or servers of a node."""

    role: PodRole
    node: int = 0
    coordinates: bool = False

    @property
    def name(self) -> str:
        """Its host name."""
        return f"{self.role}-{self.node}"

    @property
    def labels(self) -> dict[str, str]:
        """What distinguishes it from the other pods of the run."""
        labels = {ROLE_LABEL: self.role.value, NODE_LABEL: str(self.node)}
        return labels | ({COORDINATOR_LABEL: "true"} if self.coordinates else {})


def required_pods(job: Job) -> tuple[Pod, ...]:
    """Return the pods of a job: trainers, then servers."""
    # The first coordinates the run, next to what it trains.
    trainers = [Pod(PodRole.TRAINER, node, coordinates=node == 0) for node in range(job.nodes)]
    server_nodes = sorted({task.node for task in job.tasks if task.role is TaskRole.SERVER})
    return (*trainers, *(Pod(PodRole.SERVER, node) for node in server_nodes))


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
    """Return the objects of a run as an MPIJob."""
    # The operator names its pods and creates their Service.
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


def check_job(name: str, cluster: Cluster, image: str, query: Sequence[str]) -> Manifest:
    """Return a Job that prints the facts of an image."""
    labels = NAME_LABELS | {RUN_LABEL: name}
    pod = specification(name, Pod(PodRole.TRAINER), cluster, image)
    [container] = pod["containers"]
    container["command"] = [cluster.agent_python, *query]
    pod["volumes"], container["volumeMounts"] = _host_paths(cluster)
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {**ONE_ATTEMPT, "activeDeadlineSeconds": KEPT_SECONDS, "template": template}
    return _manifest("batch/v1", "Job", name, labels, spec=spec)


def pod_names(manifests: Sequence[Manifest]) -> tuple[str, ...]:
    """Return the DNS names of the pods, in node order."""
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
    # Only the controller writes manifests; the images that read this module may have no YAML.
    import yaml

    # By way of JSON: YAML would write a mapping that two manifests share as a reference.
    documents = [yaml.safe_dump(json.loads(json.dumps(each)), sort_keys=False, width=120) for each in manifests]
    return "---\n".join(documents)


def run_labels(submission: Submission) -> dict[str, str]:
    """Return the labels of all objects of a run."""
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
    """Return the secret that the pods of a run mount."""
    files = {"certificate.pem": "{certificate}", "request.json": "{request}", "environment.json": "{environment}"}
    return _manifest("v1", "Secret", labels[RUN_LABEL], labels, stringData=files)


def _manifest(version: str, kind: str, name: str, labels: dict[str, str], **content: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}, **content}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def specification(run: str, pod: Pod, cluster: Cluster, image: str) -> Manifest:
    """Return the specification of a pod of the run with this name."""
    settings = cluster.settings
    host_volumes, _ = _host_paths(cluster)
    affinity = {}
    if pod.role is PodRole.TRAINER:
        # No two pods of trainers share a machine: each is a node of the study.
        trainers = {"matchLabels": {RUN_LABEL: run, ROLE_LABEL: pod.role.value}}
        term = {"labelSelector": trainers, "topologyKey": "kubernetes.io/hostname"}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    # Trainers on the network of their machine still find other pods by name.
    uses_host = settings.host_network and pod.role is PodRole.TRAINER
    network: Manifest = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if uses_host else {}
    return {
        **network,
        "restartPolicy": "Never",
        "hostname": pod.name,
        "subdomain": run,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(settings.node_selector),
        "tolerations": [dict(toleration) for toleration in settings.tolerations],
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "affinity": affinity,
        "containers": [_container(pod, cluster, image)],
        "volumes": [
            {"name": "secret", "secret": {"secretName": run}},
            {"name": "node", "emptyDir": {}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            *host_volumes,
        ],
    }


def _resources(pod: Pod, cluster: Cluster) -> dict[str, str]:
    """Return the resources that a pod requests."""
    if pod.role is PodRole.LAUNCHER:
        return {}
    is_trainer = pod.role is PodRole.TRAINER
    resources = {}
    for name, quantity in cluster.settings.resources.items():
        # Kubernetes' own resources have no domain; devices have that of their driver.
        if is_trainer or "/" not in name:
            resources[name] = quantity
    if cluster.device == "gpu" and is_trainer:
        resources[GPU] = str(cluster.devices_per_node)
    return resources


def _container(pod: Pod, cluster: Cluster, image: str) -> Manifest:
    resources = _resources(pod, cluster)
    can_lock = cluster.settings.ipc_lock and pod.role is PodRole.TRAINER
    _, host_mounts = _host_paths(cluster)
    # The other pods may start so much later, and the coordinator waits as long for them.
    first_command_seconds = 2 * math.ceil(cluster.settings.start_within_seconds)
    program = ["remote_exec", "serve", CERTIFICATE_FILE, "$(POD_IP)", str(first_command_seconds)]
    if pod.coordinates:
        program = ["coordinator_pod"]
    return {
        "name": pod.role.value,
        "image": image,
        "command": [cluster.agent_python, "-m", f"{__package__}.{program[0]}", *program[1:]],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"requests": resources, "limits": resources},
        **({"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if can_lock else {}),
        "volumeMounts": [
            {"name": "secret", "mountPath": SECRET_FOLDER},
            {"name": "node", "mountPath": NODE_FOLDER},
            {"name": "shared-memory", "mountPath": "/dev/shm"},
            *host_mounts,
        ],
    }


def _host_paths(cluster: Cluster) -> tuple[list[Manifest], list[Manifest]]:
    """Return the volumes and the read-only mounts of the machine's own folders."""
    volumes, mounts = [], []
    for index, path in enumerate(cluster.settings.host_paths):
        volumes.append({"name": f"host-{index}", "hostPath": {"path": path}})
        mounts.append({"name": f"host-{index}", "mountPath": path, "readOnly": True})
    return volumes, mounts
