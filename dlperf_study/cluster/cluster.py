"""Where runs take place. Standard library only."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dlperf_study.study.configuration import Configuration, cluster_title
from dlperf_study.wording import counted

#: The key of ``python`` and of ``images`` that stands for every framework without one of its own, and for the guards.
DEFAULT = "default"


@dataclass(frozen=True)
class Ssh:
    """How hosts are reached by ssh; ``config_file`` is "" for the user's own."""

    config_file: str = ""


@dataclass(frozen=True)
class Slurm:
    """How a job is put into the queue; an empty ``partition`` or ``account`` is the user's default."""

    partition: str = ""
    account: str = ""
    options: tuple[str, ...] = ()
    jobs_in_queue: int = 1
    start_within_seconds: float = 24 * 3600.0
    poll_seconds: float = 5.0


@dataclass(frozen=True)
class Kubernetes:
    """Where pods run and of what they are made; ``resources`` are both what a pod requests and its limit."""

    namespace: str = "default"
    context: str = ""
    kubeconfig: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    image_pull_secrets: tuple[str, ...] = ()
    start_within_seconds: float = 600.0
    resources: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    host_paths: tuple[str, ...] = ()
    mpi_operator: bool = False

    def image_for(self, framework: str) -> str | None:
        """Return the image that has the framework's library, if the cluster file names one."""
        return self.images.get(framework) or self.images.get(DEFAULT)


@dataclass(frozen=True)
class Cluster:
    """The machines of one cluster file, with every ``auto`` replaced by what was found.

    ``device`` is ``cpu`` or ``gpu``; ``device_peak_flops`` (FLOP/s of one device) is None when unknown.
    ``idle_max_busy_cores`` is how many cores other processes may keep busy before a run starts, and
    ``idle_wait_seconds`` how long to wait for that.
    ``hosts`` has a name for each node where the launcher has to be told. ``network_interface`` is "" where
    libraries may choose, ``work_folder`` where each node's own temporary folder will do.
    ``container`` is what every task's command is put behind.
    """

    name: str
    nodes: int
    devices_per_node: int
    device: str
    device_name: str
    launcher: str = "local"
    device_peak_flops: float | None = None
    link: str = "loopback"
    idle_max_busy_cores: float = 0.5
    idle_wait_seconds: float = 20.0
    python: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    network_interface: str = ""
    shared_files: bool = True
    work_folder: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()
    container: tuple[str, ...] = ()
    ssh: Ssh = Ssh()
    slurm: Slurm = Slurm()
    kubernetes: Kubernetes = Kubernetes()

    @property
    def title(self) -> str:
        """What pages call it."""
        return cluster_title(self.name)

    def python_for(self, framework: str) -> str:
        """Return the Python that has the framework's library; this one unless the cluster file names another."""
        return self.python.get(framework) or self.guard_python

    @property
    def guard_python(self) -> str:
        """The Python of the guards, and of every framework for which no other is named."""
        return self.python.get(DEFAULT) or sys.executable

    def planning_python_for(self, framework: str) -> str:
        """Return the Python of this machine whose libraries a plan counts on; images are compared with it later."""
        return sys.executable if self.launcher == "kubernetes" else self.python_for(framework)

    def brought_by(self, framework: str) -> str:
        """Return what brings the framework's library to a run: an image, or a Python."""
        image = self.kubernetes.image_for(framework) if self.launcher == "kubernetes" else None
        return image or self.python_for(framework)

    @property
    def is_this_machine(self) -> bool:
        """Whether its one node is the machine that drives the study."""
        return self.launcher == "local"

    @property
    def has_queue(self) -> bool:
        """Whether runs wait for nodes of their own, and none takes place on this machine."""
        return self.launcher in ("slurm", "kubernetes")

    @property
    def start_within_seconds(self) -> float:
        """How long a queue may keep what is to run waiting; 0 where there is none."""
        waits = {"slurm": self.slurm.start_within_seconds, "kubernetes": self.kubernetes.start_within_seconds}
        return waits.get(self.launcher, 0.0)

    def too_small_for(self, configuration: Configuration) -> str | None:
        """Return why the configuration needs more than there is, or None."""
        if configuration.nodes > self.nodes or configuration.devices_per_node > self.devices_per_node:
            return f"needs {_size(configuration)}; cluster {self.title} has {_size(self)}"
        threads = configuration.devices_per_node * configuration.threads_per_device
        if self.device == "cpu" and threads > self.devices_per_node:
            cores = counted(self.devices_per_node, "core")
            return f"needs {counted(threads, 'thread')} on a node; cluster {self.title} has {cores}"
        return None


def _size(machines: Cluster | Configuration) -> str:
    total = machines.nodes * machines.devices_per_node
    return f"{counted(total, 'device')} on {counted(machines.nodes, 'node')}"
