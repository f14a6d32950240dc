"""The pods of a run: what they are, and their specification. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dlperf_study.cluster import software
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.study.job import Job, TaskRole

Manifest = dict[str, Any]

#: Where pods find their order and what nobody else may read, and where they write.
ORDER_FOLDER, SECRET_FOLDER, NODE_FOLDER = (f"/run/dlperf-study/{name}" for name in ("order", "secret", "node"))
ORDER_FILE = f"{ORDER_FOLDER}/order.json"
TOKEN_FILE, ENVIRONMENT_FILE = f"{SECRET_FOLDER}/token", f"{SECRET_FOLDER}/environment.json"
RUN_LABEL, ROLE_LABEL, NODE_LABEL = "dlperf-study/run", "dlperf-study/role", "dlperf-study/node"
#: Is on the one pod that conducts the run.
CONDUCTOR_LABEL = "dlperf-study/conductor"
GPU = "nvidia.com/gpu"


class PodRole(StrEnum):
    """What the pod of one node is for; ``LAUNCHER``: nothing but to conduct the others."""

    TRAINER = "trainer"
    SERVER = "server"
    LAUNCHER = "launcher"


@dataclass(frozen=True)
class Pod:
    """One pod of a run: the trainers, or the servers, of one node of the configuration."""

    role: PodRole
    node: int = 0
    conducts: bool = False

    @property
    def name(self) -> str:
        """Its host name."""
        return f"{self.role}-{self.node}"

    @property
    def labels(self) -> dict[str, str]:
        """By what it is told from the other pods of the run."""
        conductor = {CONDUCTOR_LABEL: "true"} if self.conducts else {}
        return {ROLE_LABEL: self.role.value, NODE_LABEL: str(self.node), **conductor}


def pods_of(job: Job) -> tuple[Pod, ...]:
    """Return the pods a job takes: first one per node for its trainers, then one per node that has servers.

    The first conducts the run, beside what it trains.
    """
    trainers = [Pod(PodRole.TRAINER, node, conducts=node == 0) for node in range(job.nodes)]
    servers = sorted({task.node for task in job.tasks if task.role is TaskRole.SERVER})
    return (*trainers, *(Pod(PodRole.SERVER, node) for node in servers))


def specification(run: str, pod: Pod, cluster: Cluster, image: str) -> Manifest:
    """Return what Kubernetes must know of a pod of the run called ``run``."""
    settings = cluster.kubernetes
    return {
        "restartPolicy": "Never",
        "hostname": pod.name,
        "subdomain": run,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(settings.node_selector),
        "tolerations": [dict(toleration) for toleration in settings.tolerations],
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "affinity": _apart(run) if pod.role is PodRole.TRAINER else {},
        "containers": [_container(pod, cluster, image)],
        "volumes": [
            {"name": "order", "configMap": {"name": run}},
            {"name": "secret", "secret": {"secretName": run}},
            {"name": "node", "emptyDir": {}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            *({"name": f"host-{k}", "hostPath": {"path": path}} for k, path in enumerate(settings.host_paths)),
        ],
    }


def check_specification(name: str, cluster: Cluster, image: str) -> Manifest:
    """Return a pod that says what an image holds, where and with what a pod of trainers would run."""
    pod = specification(name, Pod(PodRole.TRAINER), cluster, image)
    [container] = pod["containers"]
    container["command"] = [cluster.guard_python, "-m", software.MODULE]
    pod["volumes"] = [volume for volume in pod["volumes"] if "hostPath" in volume]
    container["volumeMounts"] = list(_host_mounts(cluster))
    return pod


def _apart(run: str) -> Manifest:
    """Return that no two pods of trainers share a machine: they stand for nodes."""
    same = {"matchLabels": {RUN_LABEL: run, ROLE_LABEL: PodRole.TRAINER.value}}
    term = {"labelSelector": same, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _container(pod: Pod, cluster: Cluster, image: str) -> Manifest:
    program = ("coordinate",) if pod.conducts else ("serve", TOKEN_FILE, "$(POD_IP)")
    resources = _resources(pod, cluster)
    return {
        "name": pod.role.value,
        "image": image,
        "command": [cluster.guard_python, "-m", f"{__package__}.{program[0]}", *program[1:]],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"requests": resources, "limits": resources},
        "volumeMounts": [
            {"name": "order", "mountPath": ORDER_FOLDER},
            {"name": "secret", "mountPath": SECRET_FOLDER},
            {"name": "node", "mountPath": NODE_FOLDER},
            {"name": "shared-memory", "mountPath": "/dev/shm"},
            *_host_mounts(cluster),
        ],
    }


def _resources(pod: Pod, cluster: Cluster) -> dict[str, str]:
    """Return what a pod takes of its machine: trainers all its GPUs, one that only conducts next to nothing."""
    if pod.role is PodRole.LAUNCHER:
        return {}
    gpus = {GPU: str(cluster.devices_per_node)} if cluster.device == "gpu" and pod.role is PodRole.TRAINER else {}
    return {**cluster.kubernetes.resources, **gpus}


def _host_mounts(cluster: Cluster) -> Iterator[Manifest]:
    for k, path in enumerate(cluster.kubernetes.host_paths):
        yield {"name": f"host-{k}", "mountPath": path, "readOnly": True}
