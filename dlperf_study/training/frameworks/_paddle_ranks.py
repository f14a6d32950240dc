"""How the ranks of Paddle start: as tasks where one node holds them all, else by Paddle's launcher on each node.

In containers they start by the launcher on one node too: each task would have a container of its own, and these may
have no address and no memory in common.
"""

from collections.abc import Iterator

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._processes import (
    addresses,
    common_environment,
    gpu_environment,
    gpus_per_node,
    network_environment,
    tf32_environment,
    trainer_nodes,
    worker_command,
)

#: The files of the launcher: one per rank of the node.
RANK_OUTPUT = r"ranks-of-(?P<node>node-\d+)/workerlog\.(?P<rank>\d+)"
#: Without it Paddle trains on every GPU that it sees.
HIDDEN_GPUS = {VISIBLE_DEVICES: ""}
#: An empty list alone is one GPU without a name for the launcher; with this variable it counts the devices that Paddle
#: sees, and starts ranks for CPUs.
LAUNCHER_COUNTS_DEVICES = {"XPU_VISIBLE_DEVICES": "all"}


def job_of_ranks(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return the ranks of one node. They meet at the port of rank 0; a single rank meets nobody."""
    tasks = tuple(_ranks(configuration, cluster))
    gpus = gpus_per_node(configuration, cluster)
    return Job(tasks, ports=len(tasks) if len(tasks) > 1 else 0, gpus_per_node=gpus)


def job_of_launchers(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one launcher per node; each starts the ranks of its node."""
    tasks = tuple(_launchers(configuration, cluster))
    gpus, ports = gpus_per_node(configuration, cluster), 1 if configuration.nodes > 1 else 0
    return Job(tasks, configuration.nodes, ports, rank_output=RANK_OUTPUT, gpus_per_node=gpus)


def _ranks(configuration: Configuration, cluster: ClusterView) -> Iterator[Task]:
    """Yield the ranks. The node agent does what the launcher would: it starts them, and ends all when one fails."""
    shared = _node_environment(configuration, cluster, node=0)
    argv = worker_command(configuration, cluster)
    for rank in range(configuration.world_size):
        chosen = {"FLAGS_selected_gpus": str(rank)} if cluster.device == "gpu" else {"PADDLE_DISTRI_BACKEND": "gloo"}
        environment = shared | chosen | _rank_environment(configuration, rank)
        yield Task(f"rank-{rank}", TaskRole.TRAINER, 0, argv, environment)


def _rank_environment(configuration: Configuration, rank: int) -> dict[str, str]:
    """Return what Paddle's launcher tells a rank about itself and the others, all on one node."""
    ranks = ("PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK", "PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE")
    sizes = ("PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE", "PADDLE_LOCAL_SIZE")
    variables = dict.fromkeys(ranks, str(rank)) | dict.fromkeys(sizes, str(configuration.world_size))
    variables["PADDLE_NNODES"] = "1"
    if configuration.world_size == 1:
        return variables
    endpoints = addresses("host", trainer_nodes(configuration))
    return variables | {
        "PADDLE_MASTER": endpoints[0],
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
    }


def _launchers(configuration: Configuration, cluster: ClusterView) -> Iterator[Task]:
    """Yield the launcher of each node.

    ``--max_restart 0``: a rank restarted unnoticed would be averaged into the result. ``--enable_gpu_log 0``: by
    default the launcher starts ``nvidia-smi`` every five seconds, also while ranks are timed.
    """
    nodes, python = configuration.nodes, cluster.python_for(configuration.framework)
    for node in range(nodes):
        # How the launchers meet; without ``--host`` each would use the address of its host's name.
        meeting = ("--master", "{host_0}:{port_0}", "--nnodes", str(nodes))
        rendezvous = (*meeting, "--rank", str(node), "--host", f"{{host_{node}}}") if nodes > 1 else ()
        argv = (
            *(python, "-m", "paddle.distributed.launch", *rendezvous),
            *("--nproc_per_node", str(configuration.devices_per_node)),
            *("--max_restart", "0", "--enable_gpu_log", "0"),
            *("--log_dir", "{run}/scratch/ranks-of-node-" + str(node)),
            *worker_command(configuration, cluster),
        )
        environment = _node_environment(configuration, cluster, node)
        if cluster.device != "gpu":
            environment |= LAUNCHER_COUNTS_DEVICES
        environment |= network_environment(configuration, cluster, node)
        yield Task(f"node-{node}", TaskRole.TRAINER, node, argv, environment)


def _node_environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return what all ranks of a node share: their threads, GPUs and number formats."""
    environment = common_environment(configuration) | (gpu_environment(cluster, node) or HIDDEN_GPUS)
    return environment | tf32_environment(configuration, cluster.device)
