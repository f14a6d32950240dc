"""Paddle, dynamic graph, gradients averaged by all-reduce: gloo between CPUs, NCCL between GPUs."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dlperf_study.core.user_commands import install_command
from dlperf_study.study.communication import ALL_REDUCE
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.job import Job
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.training.frameworks import _obstacles, _paddle, _paddle_ranks, _processes
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._obstacles import Compilers, Levels
from dlperf_study.training.frameworks._trainer import CollectiveTrainer, Communication
from dlperf_study.training.libraries import paddle as paddle_library
from dlperf_study.training.libraries._base import Buffer
from dlperf_study.training.libraries.paddle import Paddle, TrainingStep

STRATEGIES = (ALL_REDUCE,)
COMPILERS: Compilers = {paddle_library.TO_STATIC: None, paddle_library.CINN: paddle_library.cinn_obstacle}
LEVELS: Levels = _obstacles.BUILT_LEVELS | {
    "strategy": STRATEGIES,
    "precision": tuple(COMPUTED_IN),
    "loss_scaling": ("none", "dynamic", "static"),
    "compiler": ("none", *COMPILERS),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": _obstacles.AUTOTUNING,
    "fused_optimizer": paddle_library.FUSED_OPTIMIZERS,
    "optimizer": paddle_library.OPTIMIZERS,
}


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.zero_stage:
        yield f"zero_stage is {configuration.zero_stage}, but paddle_collective divides nothing; paddle_zero does"
    yield from collective_obstacles(configuration, cluster, version, LEVELS, ("fusion_mib",))


def collective_obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    version: str | None,
    levels: Levels,
    settings: tuple[str, ...],
) -> Iterator[str]:
    """Yield what keeps ranks without servers from running; ``levels`` and ``settings`` are those that are built."""
    yield from _obstacles.server_obstacles(configuration)
    yield from _obstacles.missing_library("paddlepaddle", version, install_command("paddle"))
    yield from _paddle.obstacles(configuration, cluster.device)
    if configuration.fused_optimizer == "fused" and (name := _paddle.WITHOUT_FUSION.get(configuration.optimizer)):
        yield f"fused_optimizer fused: Paddle's {name} has no use_multi_tensor, which its Momentum has"
    yield from _paddle.parallel_obstacles(configuration, cluster.device)
    yield from _obstacles.unsuitable_parts(configuration, "paddle", levels, (*settings, *_paddle.REFUSED_BY_NAME))
    yield from _paddle.memory_format_obstacles(configuration)


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return the ranks themselves if one node holds them all; else one launcher per node, which starts those there.

    Paddle's launcher takes 2 to 6 s and 136 MiB of a run, and a node agent does as well what it does on one node.
    Between nodes ranks find each other by it, and in a container it keeps them together.
    """
    if configuration.nodes == 1 and not cluster.container:
        return _paddle_ranks.job_of_ranks(configuration, cluster)
    return _paddle_ranks.job_of_launchers(configuration, cluster)


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
        """Wait for all ranks."""
        import paddle.distributed as dist

        dist.barrier()

    def maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks."""
        import paddle
        import paddle.distributed as dist

        maximum = paddle.to_tensor([value], dtype="float64")
        dist.all_reduce(maximum, op=dist.ReduceOp.MAX)
        return float(maximum.item())

    def all_reduce(self, tensors: Sequence[Any]) -> Callable[[], None]:
        """Return what all-reduces tensors one after the other."""
        import paddle.distributed as dist

        def communicate() -> None:
            for tensor in tensors:
                dist.all_reduce(tensor)

        return communicate

    def gpu_support(self) -> GpuSupport:
        """Return the support of Paddle, whose NCCL communicates."""
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
        """Return the buffers into which ``DataParallel`` fuses gradients, of one number format each."""
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
