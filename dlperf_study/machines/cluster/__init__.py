"""The machines that a study runs on. Standard library only."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dlperf_study.core.wording import counted
from dlperf_study.study.configuration import Configuration, cluster_title
from dlperf_study.study.environment_variables import COLLECTIVE_SECONDS, MEET_SECONDS

#: The key of ``python`` and of ``images`` for every framework without a key of its own, and for the node agents.
DEFAULT = "default"


@dataclass(frozen=True)
class Cluster:
    """The machines of one cluster file, with detected values.

    ``device`` is ``cpu`` or ``gpu``; ``device_peak_flops`` has FLOP/s of one device, in any number format or by
    format; None: the cluster file gives none.
    ``why_not_gpu``: why runs are measured on the CPU although this machine has GPUs; empty everywhere else.
    ``idle_max_busy_cores`` is how many cores other processes may keep busy before a run starts, and
    ``idle_wait_seconds`` how long to wait for that.
    ``ready_seconds``: how long a node may take to prepare a run, besides that wait; ``meet_seconds``: the ranks
    to meet; ``collective_seconds``: a collective.
    ``hosts`` has the names of the nodes where the launcher needs them. ``network_interface`` is "" where libraries
    choose, ``work_folder`` where each node's temporary folder is used.
    ``available_devices`` is how many devices this machine has, where it is the one node; None: only a check can tell.
    ``image_datasets`` are the folders of labelled images by name, those that this project makes itself among them.
    ``container`` is the command prefix of every task. ``settings`` is the section of the launcher: an instance of the
    launcher's own class. ``is_this_machine``: its one node is the machine that drives the study.
    """

    name: str
    nodes: int
    devices_per_node: int
    device: str
    device_name: str
    launcher: str
    device_peak_flops: float | Mapping[str, float] | None = None
    interconnect: str = "loopback"
    idle_max_busy_cores: float = 0.5
    idle_wait_seconds: float = 20.0
    ready_seconds: float = 180.0
    meet_seconds: float = MEET_SECONDS
    collective_seconds: float = COLLECTIVE_SECONDS
    python: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    network_interface: str = ""
    shared_files: bool = True
    work_folder: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()
    container: tuple[str, ...] = ()
    image_datasets: Mapping[str, str] = field(default_factory=dict)
    settings: Any = None
    is_this_machine: bool = False
    available_devices: int | None = None
    why_not_gpu: str = ""

    @property
    def title(self) -> str:
        """Its name on pages."""
        return cluster_title(self.name)

    def python_for(self, framework: str) -> str:
        """Return the Python with a framework's library."""
        return self.python.get(framework) or self.agent_python

    @property
    def agent_python(self) -> str:
        """The Python of the node agents."""
        return self.python.get(DEFAULT) or sys.executable

    def image_folder(self, configuration: Configuration) -> str:
        """Return the folder of a configuration's images, or nothing."""
        return self.image_datasets.get(configuration.image_dataset, "")

    def obstacles(self, configuration: Configuration) -> Iterator[str]:
        """Yield each reason why the configuration needs more than there is."""
        if configuration.nodes > self.nodes or configuration.devices_per_node > self.devices_per_node:
            yield f"needs {_size(configuration)}; cluster {self.title} has {_size(self)}"
        elif self.available_devices is not None and configuration.devices_per_node > self.available_devices:
            available = counted(self.available_devices, "core" if self.device == "cpu" else "GPU")
            needed = counted(configuration.devices_per_node, "device")
            count_in_file = f"the cluster file has devices_per_node: {self.devices_per_node}"
            yield f"needs {needed} on a node; this machine has {available}, but {count_in_file}"
        if self.device == "gpu" and configuration.memory_limit_mib:
            yield f"memory_limit_mib is {configuration.memory_limit_mib}, but memory is limited on CPUs only"
        threads = configuration.devices_per_node * configuration.threads_per_device
        # With one thread per device, too many threads are the same reason as too many devices.
        if self.device == "cpu" and configuration.threads_per_device > 1 and threads > self.devices_per_node:
            cores = counted(self.devices_per_node, "core")
            yield f"needs {counted(threads, 'thread')} on a node; cluster {self.title} has {cores}"


def _size(machines: Cluster | Configuration) -> str:
    total = machines.nodes * machines.devices_per_node
    return f"{counted(total, 'device')} on {counted(machines.nodes, 'node')}"
