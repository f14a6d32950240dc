"""Where runs take place. Standard library only."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from dlperf_study.study.configuration import Configuration


@dataclass(frozen=True)
class Cluster:
    """The machines of one cluster file, with every ``auto`` replaced by what was found.

    ``device`` is ``cpu`` or ``gpu``; ``device_peak_flops`` (FLOP/s of one device) is None when unknown.
    ``idle_max_busy_cores`` is how many cores other processes may keep busy before a run starts, and
    ``idle_wait_seconds`` how long to wait for that.
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

    def python_for(self, framework: str) -> str:
        """Return the Python that has the framework's library; this one unless the cluster file names another."""
        return self.python.get(framework, sys.executable)

    def too_small_for(self, configuration: Configuration) -> str | None:
        """Return why the configuration needs more than there is, or None."""
        if configuration.nodes > self.nodes or configuration.devices_per_node > self.devices_per_node:
            return f"needs {_size(configuration)}; cluster {self.name} has {_size(self)}"
        threads = configuration.devices_per_node * configuration.threads_per_device
        if self.device == "cpu" and threads > self.devices_per_node:
            return f"needs {_count(threads, 'thread')} on a node; cluster {self.name} has {self.devices_per_node} cores"
        return None


def _size(machines: Cluster | Configuration) -> str:
    total = machines.nodes * machines.devices_per_node
    return f"{_count(total, 'device')} on {_count(machines.nodes, 'node')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
