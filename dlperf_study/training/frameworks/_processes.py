"""What the processes of every framework have in common: nodes, addresses, environment, and how they meet."""

import os
import socket
import time
from collections.abc import Sequence

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import (
    COLLECTIVE_SECONDS,
    COLLECTIVE_VARIABLE,
    DEVICE_ORDER,
    MEET_SECONDS,
    MEET_VARIABLE,
    PCI_BUS_ORDER,
    VISIBLE_DEVICES,
)
from dlperf_study.training.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE, ClusterView

#: Variables of the environment that switch TF32 off in all libraries of NVIDIA, whatever a framework's switches say.
WITHOUT_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}
#: What a message names that one of these limits ended.
MEET_KEY = "start_up.meet_seconds of the cluster file"


def trainer_nodes(configuration: Configuration) -> list[int]:
    """Return the node of each trainer, in order of rank."""
    return [rank // configuration.devices_per_node for rank in range(configuration.world_size)]


def server_nodes(configuration: Configuration) -> list[int]:
    """Return the node of each server: they are spread over the nodes in turn."""
    return [server % configuration.nodes for server in range(configuration.parameter_servers)]


def addresses(host: str, nodes: Sequence[int], first_port: int = 0) -> list[str]:
    """Return the address of each process on these nodes, as ``{host_0}:{port_0}``; whoever starts it fills it in.

    ``host``: ``host`` of trainers, ``server_host`` of servers. ``first_port``: how many ports others have before.
    """
    return [f"{{{host}_{node}}}:{{port_{first_port + index}}}" for index, node in enumerate(nodes)]


def network_environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the variables that make libraries communicate over the network interface by which nodes reach each other.

    By default, gloo uses the address of the host's name, which often is a loopback address. NCCL finds better links
    than sockets by itself, so its interface is set only if the cluster file names one.
    """
    if configuration.nodes == 1:
        return {}
    variables = {"GLOO_SOCKET_IFNAME": f"{{interface_{node}}}"}
    if cluster.network_interface:
        variables["NCCL_SOCKET_IFNAME"] = cluster.network_interface
    return variables


def worker_command(configuration: Configuration, cluster: ClusterView) -> tuple[str, ...]:
    """Return the argv of a process that trains and measures."""
    return (cluster.python_for(configuration.framework), "-u", "-m", "dlperf_study.training.worker")


def gpus_per_node(configuration: Configuration, cluster: ClusterView) -> int:
    """Return how many GPUs the ranks of a node share."""
    return configuration.devices_per_node if cluster.device == "gpu" else 0


def gpu_environment(cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the variables that name the GPUs which the ranks of a node may use; none on a CPU."""
    if cluster.device != "gpu":
        return {}
    return {DEVICE_ORDER: PCI_BUS_ORDER, VISIBLE_DEVICES: f"{{devices_{node}}}"}


def common_environment(configuration: Configuration) -> dict[str, str]:
    """Return the environment of every training process: the folder of its run, and its number of threads."""
    threads = str(configuration.threads_per_device)
    return {
        CONFIGURATION_VARIABLE: "{run}/configuration.json",
        RUN_VARIABLE: "{run}",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "PYTHONUNBUFFERED": "1",
    }


def tf32_environment(configuration: Configuration, device: str) -> dict[str, str]:
    """Return the variables that keep TF32 off on GPUs, unless it is asked for."""
    return WITHOUT_TF32 if device == "gpu" and configuration.precision != "tf32" else {}


def meet_seconds() -> float:
    """Return how long the ranks of this run may take to meet."""
    return float(os.environ.get(MEET_VARIABLE, MEET_SECONDS))


def collective_seconds() -> float:
    """Return how long a collective of this run may take."""
    return float(os.environ.get(COLLECTIVE_VARIABLE, COLLECTIVE_SECONDS))


def wait_for(endpoint: str) -> None:
    """Wait until a process answers at ``host:port``; raises RunError when none does in time.

    A gradient pushed to a server that does not listen yet is lost with an error; a rank that finds no master
    sleeps for three seconds before it tries again.
    """
    host, port = endpoint.split(":")
    limit = meet_seconds()
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RunError(f"nothing answered at {endpoint} within {limit:g} s, which is {MEET_KEY}")
