"""Shared by the PyTorch frameworks: the model on its device, one step of training, the stopwatch of a GPU."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dlperf_study import models
from dlperf_study.frameworks import _common, _number_formats, _torch_compiler, _torch_precision, _torch_tuning, _tuning
from dlperf_study.frameworks._base import ClusterView, Drain, LossScaling
from dlperf_study.frameworks._gpu_support import GpuSupport, cudnn_version, exchange_library, obstacle_of
from dlperf_study.frameworks._number_formats import Output
from dlperf_study.frameworks._obstacles import (
    BUILT_LEVELS,
    Compilers,
    Levels,
    data_source_obstacles,
    missing_library,
    model_obstacles,
    require_compiler,
    unbuilt_levels,
)
from dlperf_study.frameworks._stopwatches import EventStopwatch, HostStopwatch, Stopwatch
from dlperf_study.frameworks._tasks import common_environment, gpu_environment
from dlperf_study.frameworks._torch_compiler import CompiledFormats
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import VISIBLE_DEVICES
from dlperf_study.study.precision import REDUCED_PARAMETERS

STRATEGIES = ("all_reduce",)
COMPILERS: Compilers = {_torch_compiler.COMPILER: _torch_compiler.obstacle}
LEVELS: Levels = BUILT_LEVELS | {
    "strategy": STRATEGIES,
    "precision": ("fp32", "tf32", "amp_fp16", "amp_bf16"),
    "loss_scaling": ("none", "dynamic", "static"),
    "compiler": ("none", *COMPILERS),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": _tuning.AUTOTUNING,
    "fused_optimizer": _torch_tuning.FUSED_OPTIMIZERS,
    "gradient_compression": ("none", "fp16"),
}
_NO_O2 = "PyTorch's autocast keeps parameters in float32; the level O2, which does not, is Paddle's"
REFUSED_PRECISIONS = {precision: f"precision {precision}: {_NO_O2}" for precision in REDUCED_PARAMETERS}
GPU_REMEDY = "make gpu TORCH_INDEX=ADDRESS"


def obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    version: str | None,
    library: str,
    remedy: str,
    settings: tuple[str, ...],
) -> Iterator[str]:
    """Yield each reason why PyTorch can't run the configuration."""
    if configuration.servers:
        yield f"servers is {configuration.servers}, but all-reduce has no parameter servers"
    yield from _number_formats.scaling_obstacles(configuration)
    yield from _number_formats.device_obstacles(configuration, cluster.device)
    yield from _tuning.device_obstacles(configuration, cluster.device)
    if configuration.compiler != "none" and configuration.classifier == "sharded":
        yield f"compiler {configuration.compiler}: a sharded classifier exchanges features inside of what is compiled"
    yield from missing_library(library, version, remedy)
    yield from unbuilt_levels(configuration, LEVELS, settings, REFUSED_PRECISIONS)
    yield from model_obstacles(configuration, "torch")
    yield from data_source_obstacles(configuration, "torch")


def environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the environment of the ranks of a node; on a CPU no GPU is visible to them."""
    variables = common_environment(configuration) | _number_formats.environment(configuration, cluster.device)
    return variables | {VISIBLE_DEVICES: ""} | gpu_environment(cluster, node)


def gpu_support() -> GpuSupport:
    """Return what PyTorch can do with the GPUs that this process may use."""
    import torch

    if not torch.version.cuda:
        return GpuSupport()
    names: tuple[str, ...] = ()
    obstacle = ""
    try:
        torch.cuda.init()
        names = tuple(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))
    # CUDA fails with exceptions of several classes.
    except Exception as error:
        obstacle = obstacle_of(error)
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if torch.distributed.is_nccl_available() else ""
    cudnn = cudnn_version(torch.backends.cudnn.version() or 0)
    return GpuSupport(str(torch.version.cuda), cudnn, nccl, names, obstacle)


class TorchTrainer:
    """One rank of a data-parallel run; each framework adds how gradients travel.

    ``exchange_threads``: how many threads of a process its library exchanges gradients with between CPUs.
    """

    exchange_threads: int
    tensor_library = "torch"
    #: Whether parameters, and so their gradients, have the memory format of images and features too.
    has_parameters_in_memory_format = True
    _gpu_support = staticmethod(gpu_support)
    train_step: "TrainingStep"

    def __init__(self, configuration: Configuration, rank: int, world_size: int, local_rank: int) -> None:
        self.rank, self.world_size = rank, world_size
        self.exchange_kind = "all_reduce" if world_size > 1 else "none"
        self._configuration = configuration
        self._device = _device(local_rank)
        _torch_precision.set_tf32(configuration)
        _torch_tuning.set_autotuning(configuration)
        layer = build_layer(configuration, rank, world_size)
        self._layer = layer.to(self._device)
        if self.has_parameters_in_memory_format:
            self._layer = self._layer.to(memory_format=_memory_format(configuration))
        self._first_outputs: list[Output] = []
        self._compiled = CompiledFormats() if configuration.compiler == _torch_compiler.COMPILER else None
        if self._compiled:
            require_compiler(configuration, COMPILERS)
            _torch_compiler.keep_compiled_code(configuration)
            self._compiled.compile(self._layer)

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log about library, device and model."""
        import torch

        exchanged = replicated_parameters(self._layer) if self.world_size > 1 else []
        element_bytes = _common.ELEMENT_BYTES[self._configuration.gradient_compression]
        return {
            "library": "torch",
            "library_version": torch.__version__,
            "library_commit": str(torch.version.git_version),
            "cuda": str(torch.version.cuda),
            "device": "gpu" if self._device.type == "cuda" else "cpu",
            "parameters": sum(p.numel() for p in trainable_parameters(self._layer)),
            "gradient_bytes": sum(p.numel() for p in exchanged) * element_bytes,
            "exchange_threads": self.exchange_threads if self.world_size > 1 else 0,
            **({"exchange_library": self.exchange_library()} if self.world_size > 1 else {}),
        } | _common.model_facts(self._configuration)

    def exchange_library(self) -> str:
        """Return what exchanges the gradients of several ranks, as the rank log names it; gloo has no versions."""
        return exchange_library(self._gpu_support() if self._device.type == "cuda" else None)

    def on_device(self, images: Any, labels: Any) -> tuple[Any, Any]:
        """Return a batch as tensors on the device of this rank, the images in its memory format."""
        import torch

        placed = torch.as_tensor(images, device=self._device)
        memory_format = _memory_format(self._configuration)
        return placed.contiguous(memory_format=memory_format), torch.as_tensor(labels, device=self._device)

    def first_step(self, batch: tuple[Any, Any]) -> str:
        """Do the first step; return the number format in which its first convolution computed.

        Of a compiled network that in which it was compiled: a hook would become part of what is compiled.
        """
        if self._compiled:
            self.train_step(batch)
            _torch_compiler.refuse_further_compilation()
            self._first_outputs = self._compiled.outputs
        else:
            with _torch_precision.observed_outputs(self._layer) as self._first_outputs:
                self.train_step(batch)
        return _number_formats.observed_format(self._first_outputs, _torch_precision.products(self._device))

    def tuning(self) -> dict[str, str]:
        """Return, after the first step, the levels of what tunes PyTorch; cuDNN is for GPUs only."""
        levels = {"fused_optimizer": _torch_tuning.optimizer_kernels(self.train_step.optimizer)}
        if self._device.type == "cuda":
            levels["cudnn_autotune"] = _torch_tuning.autotuning()
        return levels | _tuning.observed_memory_format(self._first_outputs)

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return self.train_step.scaler.state()

    def settle(self) -> Drain:
        """Wait for the device; under all-reduce a step ends with its update applied, so nothing is pending."""
        self._synchronise()
        return Drain()

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for this rank's device."""
        import torch

        if self._device.type == "cuda":
            return EventStopwatch(partial(torch.cuda.Event, enable_timing=True))
        return HostStopwatch()

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number."""
        return float(loss)

    def parameter_checksum(self) -> str:
        """Return a digest of all parameters but those of a class shard, which belong to one rank."""
        return _common.checksum([p.detach().cpu().numpy() for p in replicated_parameters(self._layer)])

    def _leading(self, buffers: list[Any], size: int) -> list[Any]:
        """Return buffers, the last one cut, that hold the first ``size`` bytes of ``buffers``."""
        counts = [buffer.numel() for buffer in buffers]
        element_bytes = _common.ELEMENT_BYTES[self._configuration.gradient_compression]
        leading = _common.leading_counts(counts, size // element_bytes)
        return [buffer.flatten()[:count] for buffer, count in zip(buffers, leading, strict=False)]

    def _step(self, model: Any, optimizer: Any, update: Callable[[Any, Any], None] | None = None) -> "TrainingStep":
        return TrainingStep(self._configuration, model, optimizer, self._device, update or plain_update)

    def _synchronise(self) -> None:
        import torch

        if self._device.type == "cuda":
            torch.cuda.synchronize()


class TrainingStep:
    """Forward, backward and update of one batch, in the precision of the configuration."""

    def __init__(
        self,
        configuration: Configuration,
        model: Any,
        optimizer: Any,
        device: Any,
        update: Callable[[Any, Any], None],
    ) -> None:
        self.optimizer = optimizer
        self._model, self._update = model, update
        self.scaler = _torch_precision.LossScaler(configuration, optimizer, device)
        self._autocast = _torch_precision.autocast(configuration, device)

    def __call__(self, batch: tuple[Any, Any]) -> Any:
        """Do one step; return the loss, which stays on the device."""
        with self._autocast():
            loss = self._model(*batch)
        self.scaler.scaler.scale(loss).backward()
        self._update(self.optimizer, self.scaler.scaler)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss.detach()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Take back, at the end, what steps change: parameters, statistics, and states of optimizer and loss scaling.

        They are kept on the host, so that the device has no more in its memory than while it trains.
        """
        import torch

        parts, states = (self._model, self.optimizer, self.scaler.scaler), io.BytesIO()
        torch.save([part.state_dict() for part in parts], states)
        yield
        states.seek(0)
        for part, state in zip(parts, torch.load(states, map_location="cpu"), strict=True):
            part.load_state_dict(state)


def plain_update(optimizer: Any, scaler: Any) -> None:
    """Update by gradients that are already exchanged, or need no exchange."""
    scaler.step(optimizer)


def build_layer(configuration: Configuration, rank: int, world_size: int) -> Any:
    """Build the model, with the same initial parameters on every rank."""
    import torch

    torch.manual_seed(configuration.seed)
    return models.load(configuration.model).builder("torch")(configuration, rank, world_size)


def optimizer(configuration: Configuration, layer: Any) -> Any:
    """Return the optimizer of the configuration over what is trained in a layer."""
    import torch

    momentum = _common.MOMENTUM if configuration.optimizer == "momentum" else 0.0
    kernels = _torch_tuning.optimizer_arguments(configuration)
    return torch.optim.SGD(trainable_parameters(layer), lr=_common.LEARNING_RATE, momentum=momentum, **kernels)


def trainable_parameters(layer: Any) -> list[Any]:
    """Return what an optimizer updates."""
    return [parameter for parameter in layer.parameters() if parameter.requires_grad]


def replicated_parameters(layer: Any) -> list[Any]:
    """Return the trainable parameters that are equal on every rank; a shard of a classifier has ``no_sync``."""
    return [parameter for parameter in trainable_parameters(layer) if not getattr(parameter, "no_sync", False)]


def _device(local_rank: int) -> Any:
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def _memory_format(configuration: Configuration) -> Any:
    import torch

    return torch.channels_last if configuration.memory_format == "nhwc" else torch.contiguous_format
