"""What the processes of every framework have in common: nodes, addresses, environment, and how they meet."""

import os
import socket
import time
from collections.abc import Sequence

from dlperf_study.core.errors import RunError
from dlperf_study.study import environment_variables
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE, ClusterView

#: Variables of the environment that switch TF32 off in all libraries of NVIDIA, whatever a framework's switches say.
WITHOUT_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}
#: What a message names that one of these limits ended.
MEET_KEY = "start_up.meet_seconds of the cluster file"


def trainer_nodes(configuration: Configuration) -> list[int]:
    """Return the node of each trainer, in order of rank."""
    return [rank // configuration.devices_per_node for rank in range(configuration.world_size)]


def server_nodes(configuration: Configuration) -> list[int]:
    """Return the node of each server, in turn."""
    return [server % configuration.nodes for server in range(configuration.parameter_servers)]


def addresses(host: str, nodes: Sequence[int], first_port: int = 0) -> list[str]:
    """Return ``{host_0}:{port_0}`` of each process, after ``first_port`` other ports."""
    return [f"{{{host}_{node}}}:{{port_{first_port + index}}}" for index, node in enumerate(nodes)]


def network_environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the variables for communication between nodes."""
    # By default, gloo uses the address of the host's name, which often is a loopback address. NCCL finds better links
    # than sockets by itself, so its interface is set only if the cluster file names one.
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
    if cluster.device == "gpu":
        return configuration.devices_per_node
    return 0


def gpu_environment(cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the variables that name the GPUs of a node."""
    if cluster.device != "gpu":
        return {}
    return {
        environment_variables.DEVICE_ORDER: environment_variables.PCI_BUS_ORDER,
        environment_variables.VISIBLE_DEVICES: f"{{devices_{node}}}",
    }


def common_environment(configuration: Configuration) -> dict[str, str]:
    """Return the environment of every training process."""
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
    """Return the variables that keep TF32 off."""
    if device == "gpu" and configuration.precision != "tf32":
        return WITHOUT_TF32
    return {}


def meet_seconds() -> float:
    """Return how long the ranks may take to meet."""
    return float(os.environ.get(environment_variables.MEET_VARIABLE, environment_variables.MEET_SECONDS))


def collective_seconds() -> float:
    """Return how long a collective of this run may take."""
    return float(os.environ.get(environment_variables.COLLECTIVE_VARIABLE, environment_variables.COLLECTIVE_SECONDS))


def wait_for(endpoint: str) -> None:
    """Wait until a process answers at ``host:port``; raises RunError."""
    # A gradient pushed to a server that does not listen yet is lost with an error; a rank that finds no master sleeps
    # for three seconds before it tries again.
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
