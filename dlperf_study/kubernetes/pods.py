"""The pods of a run: what they are, and their specification. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dlperf_study.cluster import software
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.study.job import Job, TaskRole

Manifest = dict[str, Any]

#: Where pods find the files of the run's Secret, and where they write.
SECRET_FOLDER = "/run/dlperf-study/secret"
NODE_FOLDER = "/run/dlperf-study/node"
REQUEST_FILE = f"{SECRET_FOLDER}/request.json"
TOKEN_FILE = f"{SECRET_FOLDER}/token"
ENVIRONMENT_FILE = f"{SECRET_FOLDER}/environment.json"
RUN_LABEL, ROLE_LABEL, NODE_LABEL = "dlperf-study/run", "dlperf-study/role", "dlperf-study/node"
#: On the one pod that coordinates the run.
COORDINATOR_LABEL = "dlperf-study/coordinator"
GPU = "nvidia.com/gpu"


class PodRole(StrEnum):
    """What the pod of one node is for; ``LAUNCHER``: only to coordinate the others."""

    TRAINER = "trainer"
    SERVER = "server"
    LAUNCHER = "launcher"


@dataclass(frozen=True)
class Pod:
    """One pod of a run: the trainers, or the servers, of one node of the configuration."""

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


def pods_of(job: Job) -> tuple[Pod, ...]:
    """Return the pods of a job: first one per node for its trainers, then one per node that has servers.

    The first coordinates the run, next to what it trains.
    """
    trainers = [Pod(PodRole.TRAINER, node, coordinates=node == 0) for node in range(job.nodes)]
    server_nodes = sorted({task.node for task in job.tasks if task.role is TaskRole.SERVER})
    return (*trainers, *(Pod(PodRole.SERVER, node) for node in server_nodes))


def specification(run: str, pod: Pod, cluster: Cluster, image: str) -> Manifest:
    """Return the specification of a pod of the run with this name."""
    settings = cluster.settings
    host_volumes, _ = _host_paths(cluster)
    return {
        "restartPolicy": "Never",
        "hostname": pod.name,
        "subdomain": run,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(settings.node_selector),
        "tolerations": [dict(toleration) for toleration in settings.tolerations],
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "affinity": _one_per_machine(run) if pod.role is PodRole.TRAINER else {},
        "containers": [_container(pod, cluster, image)],
        "volumes": [
            {"name": "secret", "secret": {"secretName": run}},
            {"name": "node", "emptyDir": {}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            *host_volumes,
        ],
    }


def check_specification(name: str, cluster: Cluster, image: str) -> Manifest:
    """Return a pod that prints what an image has installed, on a node and with resources as a pod of trainers."""
    pod = specification(name, Pod(PodRole.TRAINER), cluster, image)
    [container] = pod["containers"]
    container["command"] = [cluster.guard_python, "-m", software.MODULE]
    pod["volumes"], container["volumeMounts"] = _host_paths(cluster)
    return pod


def _one_per_machine(run: str) -> Manifest:
    """Return an affinity by which no two pods of trainers share a machine: each is a node of the study."""
    trainers = {"matchLabels": {RUN_LABEL: run, ROLE_LABEL: PodRole.TRAINER.value}}
    term = {"labelSelector": trainers, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _container(pod: Pod, cluster: Cluster, image: str) -> Manifest:
    resources = _resources(pod, cluster)
    _, host_mounts = _host_paths(cluster)
    program = ["remote_exec", "serve", TOKEN_FILE, "$(POD_IP)"]
    if pod.coordinates:
        program = ["coordinator_pod"]
    return {
        "name": pod.role.value,
        "image": image,
        "command": [cluster.guard_python, "-m", f"{__package__}.{program[0]}", *program[1:]],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"requests": resources, "limits": resources},
        "volumeMounts": [
            {"name": "secret", "mountPath": SECRET_FOLDER},
            {"name": "node", "mountPath": NODE_FOLDER},
            {"name": "shared-memory", "mountPath": "/dev/shm"},
            *host_mounts,
        ],
    }


def _resources(pod: Pod, cluster: Cluster) -> dict[str, str]:
    """Return what a pod takes of its machine: trainers all its GPUs, a launcher next to nothing."""
    if pod.role is PodRole.LAUNCHER:
        return {}
    resources = dict(cluster.settings.resources)
    if cluster.device == "gpu" and pod.role is PodRole.TRAINER:
        resources[GPU] = str(cluster.devices_per_node)
    return resources


def _host_paths(cluster: Cluster) -> tuple[list[Manifest], list[Manifest]]:
    """Return the volumes and the read-only mounts of the machine's own folders."""
    volumes, mounts = [], []
    for index, path in enumerate(cluster.settings.host_paths):
        volumes.append({"name": f"host-{index}", "hostPath": {"path": path}})
        mounts.append({"name": f"host-{index}", "mountPath": path, "readOnly": True})
    return volumes, mounts
