"""Paddle, dynamic graph, gradients averaged by all-reduce: gloo between CPUs, NCCL between GPUs."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dlperf_study.core.user_commands import install_command
from dlperf_study.study.communication import ALL_REDUCE
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.training.frameworks import _obstacles, _paddle, _processes
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._obstacles import Compilers, Values
from dlperf_study.training.frameworks._trainer import CollectiveTrainer, Communication, one_by_one
from dlperf_study.training.libraries import paddle as paddle_library
from dlperf_study.training.libraries._base import Buffer
from dlperf_study.training.libraries.paddle import Paddle, TrainingStep

STRATEGIES = (ALL_REDUCE,)
COMPILERS: Compilers = {paddle_library.TO_STATIC: None, paddle_library.CINN: paddle_library.cinn_obstacle}
BUILT: Values = _obstacles.BUILT_FOR_LIBRARIES | {
    "strategy": STRATEGIES,
    "precision": tuple(COMPUTED_IN),
    "compiler": ("none", *COMPILERS),
    "fused_optimizer": paddle_library.FUSED_OPTIMIZERS,
    "optimizer": paddle_library.OPTIMIZERS,
}


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.zero_stage:
        yield f"zero_stage is {configuration.zero_stage}, but paddle_collective shards nothing; use paddle_zero"
    yield from collective_obstacles(configuration, cluster, version, BUILT, ("fusion_mib",))


def collective_obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    version: str | None,
    built: Values,
    settings: tuple[str, ...],
) -> Iterator[str]:
    """Yield what keeps ranks without servers from running."""
    yield from _obstacles.server_obstacles(configuration)
    yield from _obstacles.missing_library("paddlepaddle", version, install_command("paddle"))
    yield from _paddle.obstacles(configuration, cluster.device)
    if configuration.fused_optimizer == "fused" and (name := _paddle.WITHOUT_FUSION.get(configuration.optimizer)):
        yield f"fused_optimizer fused: Paddle's {name} has no use_multi_tensor; use optimizer momentum"
    yield from _paddle.parallel_obstacles(configuration, cluster.device)
    yield from _obstacles.unsuitable_parts(configuration, "paddle", built, (*settings, *_paddle.REFUSED_BY_NAME))
    yield from _paddle.memory_format_obstacles(configuration)


#: The files of the launcher: one per rank of the node.
RANK_OUTPUT = r"ranks-of-(?P<node>node-\d+)/workerlog\.(?P<rank>\d+)"
#: Without it Paddle trains on every GPU that it sees.
HIDDEN_GPUS = {VISIBLE_DEVICES: ""}
#: An empty list alone is one GPU without a name for the launcher; with this variable it counts the devices that Paddle
#: sees, and starts ranks for CPUs.
LAUNCHER_COUNTS_DEVICES = {"XPU_VISIBLE_DEVICES": "all"}


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return the ranks of one node, or one launcher per node."""
    # Paddle's launcher takes 2 to 6 s and 136 MiB of a run, and a node agent does as well what it does on one node.
    # Between nodes ranks find each other by it. In containers it keeps them together: each task would have a container
    # of its own, and these may have no address and no memory in common.
    gpus = _processes.gpus_per_node(configuration, cluster)
    if configuration.nodes == 1 and not cluster.container:
        ranks = tuple(_ranks(configuration, cluster))
        # A single rank meets nobody.
        return Job(ranks, ports=len(ranks) if len(ranks) > 1 else 0, gpus_per_node=gpus)
    ports = 1 if configuration.nodes > 1 else 0
    tasks = tuple(_launchers(configuration, cluster))
    return Job(tasks, configuration.nodes, ports, rank_output=RANK_OUTPUT, gpus_per_node=gpus)


def _ranks(configuration: Configuration, cluster: ClusterView) -> Iterator[Task]:
    """Yield the ranks, which meet at the port of rank 0."""
    shared = _node_environment(configuration, cluster, node=0)
    argv = _processes.worker_command(configuration, cluster)
    for rank in range(configuration.world_size):
        chosen = {"FLAGS_selected_gpus": str(rank)} if cluster.device == "gpu" else {"PADDLE_DISTRI_BACKEND": "gloo"}
        environment = shared | chosen | _rank_environment(configuration, rank)
        yield Task(f"rank-{rank}", TaskRole.TRAINER, 0, argv, environment)


def _rank_environment(configuration: Configuration, rank: int) -> dict[str, str]:
    """Return what Paddle's launcher tells a rank of one node."""
    ranks = ("PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK", "PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE")
    sizes = ("PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE", "PADDLE_LOCAL_SIZE")
    variables = dict.fromkeys(ranks, str(rank)) | dict.fromkeys(sizes, str(configuration.world_size))
    variables["PADDLE_NNODES"] = "1"
    if configuration.world_size > 1:
        endpoints = _processes.addresses("host", _processes.trainer_nodes(configuration))
        variables["PADDLE_MASTER"] = endpoints[0]
        variables["PADDLE_TRAINER_ENDPOINTS"] = ",".join(endpoints)
        variables["PADDLE_CURRENT_ENDPOINT"] = endpoints[rank]
    return variables


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
            *_processes.worker_command(configuration, cluster),
        )
        environment = _node_environment(configuration, cluster, node)
        if cluster.device != "gpu":
            environment |= LAUNCHER_COUNTS_DEVICES
        environment |= _processes.network_environment(configuration, cluster, node)
        yield Task(f"node-{node}", TaskRole.TRAINER, node, argv, environment)


def _node_environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return what all ranks of a node share."""
    environment = _processes.common_environment(configuration)
    environment |= _processes.gpu_environment(cluster, node) or HIDDEN_GPUS
    return environment | _processes.tf32_environment(configuration, cluster.device)


class PaddleGroup(Communication):
    """All ranks, which meet by Paddle's environment of a parallel job once rank 0 can be met."""

    #: Between CPUs, gloo moves bytes in a thread of its own, and reduces in that of the training.
    threads = 1

    def __init__(self) -> None:
        super().__init__(*paddle_library.environment_rank())
        if self.ranks == 1:
            return
        import paddle.distributed as dist

        if self.rank > 0 and "PADDLE_MASTER" in os.environ:
            _processes.wait_for(os.environ["PADDLE_MASTER"])
        dist.init_parallel_env()

    def barrier(self) -> None:
        import paddle.distributed as dist

        dist.barrier()

    def maximum(self, value: float) -> float:
        import paddle
        import paddle.distributed as dist

        maximum = paddle.to_tensor([value], dtype="float64")
        dist.all_reduce(maximum, op=dist.ReduceOp.MAX)
        return float(maximum.item())

    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        import paddle.distributed as dist

        return one_by_one(dist.all_reduce, tensors)

    def gpu_support(self) -> GpuSupport:
        return paddle_library.gpu_support()


class DataParallelTrainer(CollectiveTrainer):
    """One rank of a data-parallel run; the communication runs inside ``backward``."""

    _library: Paddle
    train_step: TrainingStep

    def __init__(self, configuration: Configuration) -> None:
        group, library = PaddleGroup(), Paddle(configuration)
        super().__init__(configuration, library, group)
        library.set_up()
        layer = library.built(self.rank, self.world_size)
        optimizer = library.optimizer(library.trained_parameters(layer))
        self.layer, self._optimizer = library.decorated(layer, optimizer)
        _obstacles.require_compiler(configuration, COMPILERS)
        library.compile(self.layer)
        self.model = self._parallel() if self.world_size > 1 else self.layer
        self.train_step = TrainingStep(library, self.layer, self.model, self._optimizer, self._update)
        self.computation_step = self.train_step

    def _update(self) -> None:
        self._optimizer.step()

    def _parallel(self) -> Any:
        """Return the layer wrapped."""
        import paddle

        fusion = self._configuration.fusion_mib
        return paddle.DataParallel(self.layer, **({} if fusion < 0 else {"comm_buffer_size": fusion}))

    def _buffers(self) -> list[Buffer]:
        """Return the buffers into which ``DataParallel`` fuses gradients."""
        communicated, buffers = self._library.replicated_parameters(self.layer), []
        for indices in self.model.group_indices:
            buffers.append(self._library.buffer(*(communicated[index] for index in indices)))
        return buffers


FRAMEWORK = Framework(
    name="paddle_collective",
    display_name="PaddlePaddle collective",
    library="paddle",
    packages=_paddle.PACKAGES,
    strategies=STRATEGIES,
    obstacles=obstacles,
    job=job,
    trainer=DataParallelTrainer,
    environment_prefixes=_paddle.ENVIRONMENT_PREFIXES,
    gpu_support=paddle_library.gpu_support,
    compilers=COMPILERS,
    gpu_remedy=_paddle.GPU_REMEDY,
    allocator=paddle_library.PaddleAllocator,
)
