"""Paddle, dynamic graph, gradients averaged by all-reduce: gloo between CPUs, NCCL between GPUs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dlperf_study.core.user_commands import install_command
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import ALL_REDUCE, NO_EXCHANGE, Drain
from dlperf_study.study.job import Job
from dlperf_study.study.precision import COMPUTED_IN, LossScaling
from dlperf_study.training.frameworks import _paddle, _paddle_obstacles, _processes, _training
from dlperf_study.training.frameworks._base import ClusterView, Framework, Stopwatch, exchange_library
from dlperf_study.training.frameworks._obstacles import (
    AUTOTUNING,
    BUILT_LEVELS,
    Compilers,
    Levels,
    missing_library,
    require_compiler,
    server_obstacles,
    unsuitable_parts,
)
from dlperf_study.training.frameworks._paddle_ranks import job_of_launchers, job_of_ranks
from dlperf_study.training.frameworks._training import Output
from dlperf_study.training.models._paddle_layers import replicated_parameters, trainable_parameters

STRATEGIES = (ALL_REDUCE,)
COMPILERS: Compilers = {_paddle.TO_STATIC: None, _paddle.CINN: _paddle.cinn_obstacle}
LEVELS: Levels = BUILT_LEVELS | {
    "strategy": STRATEGIES,
    "precision": tuple(COMPUTED_IN),
    "loss_scaling": ("none", "dynamic", "static"),
    "compiler": ("none", *COMPILERS),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": AUTOTUNING,
    "fused_optimizer": _paddle.FUSED_OPTIMIZERS,
    "optimizer": _paddle.OPTIMIZERS,
}
#: Between CPUs, gloo moves bytes in a thread of its own, and reduces in that of the training.
EXCHANGE_THREADS = 1


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
    yield from server_obstacles(configuration)
    yield from missing_library("paddlepaddle", version, install_command("paddle"))
    yield from _paddle_obstacles.obstacles(configuration, cluster.device)
    if configuration.fused_optimizer == "fused" and (name := _paddle.WITHOUT_FUSION.get(configuration.optimizer)):
        yield f"fused_optimizer fused: Paddle's {name} has no use_multi_tensor, which its Momentum has"
    yield from _paddle_obstacles.parallel_obstacles(configuration, cluster.device)
    yield from unsuitable_parts(configuration, "paddle", levels, (*settings, *_paddle_obstacles.REFUSED_BY_NAME))
    yield from _paddle_obstacles.memory_format_obstacles(configuration)


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return the ranks themselves if one node holds them all; else one launcher per node, which starts those there.

    Paddle's launcher takes 2 to 6 s and 136 MiB of a run, and a guard does as well what it does on one node. Between
    nodes ranks find each other by it, and in a container it keeps them together.
    """
    if configuration.nodes == 1 and not cluster.container:
        return job_of_ranks(configuration, cluster)
    return job_of_launchers(configuration, cluster)


@dataclass(frozen=True)
class Bucket:
    """Gradients that ``DataParallel`` exchanges in one buffer; it fuses those of one number format only."""

    elements: int
    element_bytes: int
    dtype: Any

    @classmethod
    def of(cls, parameters: list[Any]) -> "Bucket":
        """Return the bucket of the gradients of these parameters, which have their number format."""
        elements = sum(int(parameter.size) for parameter in parameters)
        return cls(elements, parameters[0].element_size(), parameters[0].dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return self.elements * self.element_bytes


class DataParallelTrainer:
    """One rank of a data-parallel run."""

    tensor_library = "paddle"

    def __init__(self, configuration: Configuration) -> None:
        self.rank, self.world_size = _paddle.environment_rank()
        self.exchange_kind = ALL_REDUCE if self.world_size > 1 else NO_EXCHANGE
        if self.world_size > 1:
            _join(self.rank)
        self._configuration = configuration
        _paddle.set_tf32(configuration)
        _paddle.set_autotuning(configuration)
        self._first_outputs: list[Output] = []
        self._held_bytes: dict[str, int] = {}
        layer = _paddle.build_layer(configuration)
        optimizer = _optimizer(configuration, trainable_parameters(layer))
        self._layer, self._optimizer = _paddle.decorated(configuration, layer, optimizer)
        require_compiler(configuration, COMPILERS)
        _paddle.compile_network(configuration, self._layer)
        self._autocast = _paddle.autocast(configuration)
        self._scaler = _paddle.loss_scaler(configuration) if configuration.loss_scaling != "none" else None
        self._model = self._parallel() if self.world_size > 1 else self._layer

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log about library, device and model."""
        parameters = sum(int(p.size) for p in trainable_parameters(self._layer))
        threads = EXCHANGE_THREADS if self.world_size > 1 else 0
        description = _paddle.description(self._configuration, parameters, self._gradient_bytes(), threads)
        if self.world_size > 1:
            support = _paddle.gpu_support() if _paddle.uses_gpu() else None
            description["exchange_library"] = exchange_library(support)
        return description

    def transfer_batch(self, inputs: Any, *targets: Any) -> tuple[Any, ...]:
        """Return a batch as tensors on the device of this rank."""
        placed = _paddle.in_layout(self._configuration, _paddle.move_to_device(inputs))
        return placed, *map(_paddle.move_to_device, targets)

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step; return the number format in which its first convolution computed."""
        with _paddle.observed_outputs(self._layer) as self._first_outputs:
            self._update_by(batch)
        if not (self._scaler and self._scaler.skipped_steps):
            self._held_bytes = _paddle.held_bytes(trainable_parameters(self._layer), self._optimizer)
        self._optimizer.clear_grad()
        return _training.observed_format(self._first_outputs, _paddle.products)

    def tuning(self) -> dict[str, str]:
        """Return, after the first step, the levels of what tunes Paddle; cuDNN is for GPUs only."""
        levels = {"fused_optimizer": _paddle.parameter_update(self._optimizer)}
        if _paddle.uses_gpu():
            levels["cudnn_autotune"] = _paddle.autotuning()
        return levels | _training.observed_memory_format(self._first_outputs)

    def observations(self) -> dict[str, Any]:
        """Return which bytes this rank holds, as observed in the first step; nothing if loss scaling skipped it."""
        return {"held_bytes": self._held_bytes} if self._held_bytes else {}

    def train_step(self, batch: tuple[Any, ...]) -> Any:
        """Do one step; the exchange runs inside ``backward``."""
        loss = self._update_by(batch)
        self._optimizer.clear_grad()
        return loss

    def computation_step(self, batch: tuple[Any, ...]) -> Any:
        """Do one step; ``local_updates`` keeps it from exchanging."""
        return self.train_step(batch)

    def _update_by(self, batch: tuple[Any, ...]) -> Any:
        """Do a step but for clearing its gradients; return the loss."""
        with self._autocast():
            loss = self._model(*batch)
        if self._scaler:
            self._scaler.scale(loss).backward()
            self._scaler.step(self._optimizer)
            self._scaler.update()
        else:
            loss.backward()
            self._update()
        return loss.detach()

    def _update(self) -> None:
        self._optimizer.step()

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Keep ``backward`` from exchanging gradients; what the steps change is taken back."""
        with self._restored(), self._model.no_sync():
            yield

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """Take back, at the end, what steps change: parameters, statistics, and states of optimizer and loss scaling.

        They are kept on the host, so that the device has no more in its memory than while it trains.
        """
        layer_state, optimizer_state = self._layer.state_dict(), self._optimizer.state_dict()
        tensors = [*layer_state.values(), *optimizer_state.pop("master_weights", {}).values()]
        tensors += optimizer_state.values()
        values = [tensor.numpy() for tensor in tensors]
        scaling = self._scaler.state_dict() if self._scaler else {}
        yield
        for tensor, value in zip(tensors, values, strict=True):
            tensor.set_value(value)
        if self._scaler:
            self._scaler.load_state_dict(scaling)

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what all-reduces buffers of the sizes that ``DataParallel`` fuses the gradients into."""
        import paddle
        import paddle.distributed as dist

        buckets = self._buckets()
        sizes = _training.leading_counts([bucket.nbytes for bucket in buckets], size)
        buffers = [
            paddle.zeros([nbytes // bucket.element_bytes], bucket.dtype)
            for bucket, nbytes in zip(buckets, sizes, strict=False)
        ]

        def exchange() -> None:
            for buffer in buffers:
                dist.all_reduce(buffer)

        return exchange

    def barrier(self) -> None:
        """Wait for all ranks, each with its device idle."""
        import paddle.distributed as dist

        _paddle.synchronise()
        if self.world_size > 1:
            dist.barrier()

    def agreed_maximum(self, value: float) -> float:
        """Return the largest ``value`` of all ranks."""
        import paddle
        import paddle.distributed as dist

        maximum = paddle.to_tensor([value], dtype="float64")
        if self.world_size > 1:
            dist.all_reduce(maximum, op=dist.ReduceOp.MAX)
        return float(maximum.item())

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for this rank's device."""
        return _paddle.stopwatch()

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number."""
        return float(loss)

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return self._scaler.state() if self._scaler else None

    def settle(self) -> Drain:
        """Wait for the device; under all-reduce a step ends with its update applied, so nothing is pending."""
        _paddle.synchronise()
        return Drain()

    def parameter_checksum(self) -> str:
        """Return a digest of all parameters but those of a class shard, which belong to one rank."""
        return _training.checksum([p.numpy() for p in replicated_parameters(self._layer)])

    def close(self) -> None:
        """Wait for the others, so that no rank leaves while one still exchanges."""
        self.barrier()

    def _parallel(self) -> Any:
        """Return the layer wrapped."""
        import paddle

        fusion = self._configuration.fusion_mib
        return paddle.DataParallel(self._layer, **({} if fusion < 0 else {"comm_buffer_size": fusion}))

    def _gradient_bytes(self) -> int:
        return sum(bucket.nbytes for bucket in self._buckets())

    def _buckets(self) -> list["Bucket"]:
        if self.world_size == 1:
            return []
        exchanged, buckets = replicated_parameters(self._layer), []
        for indices in self._model.group_indices:
            buckets.append(Bucket.of([exchanged[index] for index in indices]))
        return buckets


def _join(rank: int) -> None:
    """Meet the other ranks, once rank 0 can be met."""
    import paddle.distributed as dist

    if rank > 0 and "PADDLE_MASTER" in os.environ:
        _processes.wait_for(os.environ["PADDLE_MASTER"])
    dist.init_parallel_env()


def _optimizer(configuration: Configuration, parameters: Any) -> Any:
    import paddle

    if configuration.optimizer == "momentum":
        is_fused = configuration.fused_optimizer == "fused"
        rates = (_training.LEARNING_RATE, _training.MOMENTUM)
        return paddle.optimizer.Momentum(*rates, parameters=parameters, use_multi_tensor=is_fused)
    if configuration.optimizer == "adamw":
        return paddle.optimizer.AdamW(_training.ADAM_LEARNING_RATE, parameters=parameters)
    return paddle.optimizer.SGD(_training.LEARNING_RATE, parameters=parameters)


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
    gpu_support=_paddle.gpu_support,
    compilers=COMPILERS,
    gpu_remedy=_paddle.GPU_REMEDY,
    allocator=_paddle.PaddleAllocator,
)
