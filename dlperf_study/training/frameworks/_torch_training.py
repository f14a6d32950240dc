"""Shared by the PyTorch frameworks: what they refuse, the model on its device, one step of training."""

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.core.user_commands import install_command, make_or
from dlperf_study.core.wording import counted
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.exchange import ALL_REDUCE, ELEMENT_BYTES, NO_EXCHANGE, Drain
from dlperf_study.study.parallel_parameters import BLOCKS_AGAIN, RECOMPUTATIONS, SHARDED_PARAMETERS
from dlperf_study.study.precision import REDUCED_PARAMETERS, LossScaling
from dlperf_study.training import models
from dlperf_study.training.frameworks import _torch, _training
from dlperf_study.training.frameworks._base import (
    ClusterView,
    Stopwatch,
    exchange_library,
)
from dlperf_study.training.frameworks._obstacles import (
    AUTOTUNING,
    BUILT_LEVELS,
    Compilers,
    Levels,
    device_obstacles,
    image_obstacles,
    missing_library,
    require_compiler,
    server_obstacles,
    unsuitable_parts,
)
from dlperf_study.training.frameworks._processes import common_environment, gpu_environment
from dlperf_study.training.frameworks._torch import CompiledFormats
from dlperf_study.training.frameworks._training import Output
from dlperf_study.training.models._base import network_of

STRATEGIES = (ALL_REDUCE,)
COMPILERS: Compilers = {_torch.COMPILER: _torch.compiler_obstacle}
LEVELS: Levels = BUILT_LEVELS | {
    "strategy": STRATEGIES,
    "precision": ("fp32", "tf32", "amp_fp16", "amp_bf16"),
    "loss_scaling": ("none", "dynamic", "static"),
    "compiler": ("none", *COMPILERS),
    "memory_format": ("nchw", "nhwc"),
    "cudnn_autotune": AUTOTUNING,
    "optimizer": _torch.OPTIMIZERS,
    "fused_optimizer": _torch.FUSED_OPTIMIZERS,
    "gradient_compression": ("none", "fp16"),
    "recompute": RECOMPUTATIONS,
}
_NO_O2 = "PyTorch's autocast keeps parameters in float32; the level O2, which does not, is Paddle's"
REFUSED_PRECISIONS = {precision: f"precision {precision}: {_NO_O2}" for precision in REDUCED_PARAMETERS}
GPU_REMEDY = make_or("gpu TORCH_INDEX=ADDRESS", "pip install torch --index-url ADDRESS")


def obstacles(
    configuration: Configuration,
    cluster: ClusterView,
    version: str | None,
    settings: tuple[str, ...],
    levels: Levels = LEVELS,
    library: str = "torch",
) -> Iterator[str]:
    """Yield each reason why PyTorch can't run the configuration; ``levels`` are those that the framework builds.

    ``library``: which one has this ``version``; None: it is not installed.
    """
    yield from server_obstacles(configuration)
    yield from device_obstacles(configuration, cluster.device)
    if configuration.compiler != "none" and configuration.classifier == "sharded":
        yield f"compiler {configuration.compiler}: a sharded classifier exchanges features inside of what is compiled"
    if configuration.recompute == BLOCKS_AGAIN:
        yield from image_obstacles(configuration, f"recompute {configuration.recompute}")
    yield from missing_library(library, version, install_command(library))
    yield from unsuitable_parts(configuration, "torch", levels, settings, REFUSED_PRECISIONS)


def environment(configuration: Configuration, cluster: ClusterView, node: int) -> dict[str, str]:
    """Return the environment of the ranks of a node; on a CPU no GPU is visible to them."""
    variables = common_environment(configuration) | _training.tf32_environment(configuration, cluster.device)
    return variables | {VISIBLE_DEVICES: ""} | gpu_environment(cluster, node)


class TorchTrainer:
    """One rank of a data-parallel run; each framework adds how gradients travel.

    ``exchange_threads``: how many threads of a process its library exchanges gradients with between CPUs.
    """

    exchange_threads: int
    tensor_library = "torch"
    #: Whether parameters, and so their gradients, have the memory format of images and features too.
    has_parameters_in_memory_format = True
    _gpu_support = staticmethod(_torch.gpu_support)
    train_step: "TrainingStep"

    def __init__(self, configuration: Configuration, rank: int, world_size: int, local_rank: int) -> None:
        self.rank, self.world_size = rank, world_size
        self.exchange_kind = ALL_REDUCE if world_size > 1 else NO_EXCHANGE
        self._configuration = configuration
        self._device = _torch.own_device(local_rank)
        _torch.set_tf32(configuration)
        _torch.set_autotuning(configuration)
        layer = build_layer(configuration, rank, world_size)
        self._layer = layer.to(self._device)
        if self.has_parameters_in_memory_format:
            self._layer = self._layer.to(memory_format=_torch.memory_format_of(configuration))
        self._first_outputs: list[Output] = []
        self._held_bytes: dict[str, int] = {}
        self._compiled = CompiledFormats() if configuration.compiler == _torch.COMPILER else None
        if self._compiled:
            require_compiler(configuration, COMPILERS)
            _torch.keep_compiled_code(configuration)
            self._compiled.compile(self._layer)

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log about library, device and model."""
        import torch

        exchanged = replicated_parameters(self._layer) if self.world_size > 1 else []
        element_bytes = ELEMENT_BYTES[self._configuration.gradient_compression]
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
        } | _training.model_facts(self._configuration)

    def exchange_library(self) -> str:
        """Return what exchanges the gradients of several ranks, as the rank log names it; gloo has no versions."""
        return exchange_library(self._gpu_support() if self._device.type == "cuda" else None)

    def transfer_batch(self, inputs: Any, *targets: Any) -> tuple[Any, ...]:
        """Return a batch as tensors on the device of this rank, images in its memory format."""
        import torch

        placed = torch.as_tensor(inputs, device=self._device)
        memory_format = _torch.memory_format_of(self._configuration)
        placed_targets = (torch.as_tensor(target, device=self._device) for target in targets)
        return placed.contiguous(memory_format=memory_format), *placed_targets

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step; return the number format in which its first convolution computed.

        Of a compiled network that in which it was compiled: a hook would become part of what is compiled.
        """
        observation = self.train_step.optimizer.register_step_post_hook(self._observe_update)
        if self._compiled:
            self.train_step(batch)
            _torch.refuse_further_compilation()
            self._first_outputs = self._compiled.outputs
        else:
            with _torch.observed_outputs(self._layer) as self._first_outputs:
                self.train_step(batch)
        observation.remove()
        return _training.observed_format(self._first_outputs, _torch.products(self._device))

    def tuning(self) -> dict[str, str]:
        """Return, after the first step, the levels of what tunes PyTorch; cuDNN is for GPUs only."""
        levels = {"fused_optimizer": _torch.optimizer_kernels(self.train_step.optimizer)}
        if self._device.type == "cuda":
            levels["cudnn_autotune"] = _torch.autotuning()
        return levels | _training.observed_memory_format(self._first_outputs)

    def observations(self) -> dict[str, Any]:
        """Return which bytes this rank holds, as observed in the first step; nothing if loss scaling skipped it."""
        return {"held_bytes": self._held_bytes} if self._held_bytes else {}

    def _observe_update(self, optimizer: Any, *_: Any) -> None:
        """Observe what is held after an update; raises RunError if a parameter is not trained."""
        trained = self._trained_parameters()
        without = sum(parameter.grad is None for parameter in trained)
        if without:
            raise RunError(f"{without} of {counted(len(trained), 'parameter')} got no gradient: they are not trained")
        self._held_bytes = _torch.held_bytes(trained, part_of(optimizer))

    def _trained_parameters(self) -> list[Any]:
        """Return what this rank trains, of divided parameters its part of them."""
        return trainable_parameters(self._layer)

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return self.train_step.scaler.state()

    def settle(self) -> Drain:
        """Wait for the device; under all-reduce a step ends with its update applied, so nothing is pending."""
        self._synchronise()
        return Drain()

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for this rank's device."""
        return _torch.stopwatch(self._device)

    def loss_value(self, loss: Any) -> float:
        """Return a loss as a number."""
        return float(loss)

    def parameter_checksum(self) -> str:
        """Return a digest of all parameters but those of a class shard, which belong to one rank."""
        return _training.checksum([p.detach().cpu().numpy() for p in replicated_parameters(self._layer)])

    def _leading(self, buffers: list[Any], size: int) -> list[Any]:
        """Return buffers, the last one cut, that hold the first ``size`` bytes of ``buffers``."""
        counts = [buffer.numel() for buffer in buffers]
        element_bytes = ELEMENT_BYTES[self._configuration.gradient_compression]
        leading = _training.leading_counts(counts, size // element_bytes)
        return [buffer.flatten()[:count] for buffer, count in zip(buffers, leading, strict=False)]

    def _step(self, model: Any, optimizer: Any, update: Callable[[Any, Any], None] | None = None) -> "TrainingStep":
        kind = AccumulatedStep if self._configuration.micro_batches > 1 else TrainingStep
        return kind(self._configuration, model, optimizer, self._device, update or plain_update)

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
        self.scaler = _torch.LossScaler(configuration, optimizer, device)
        self._autocast = _torch.autocast(configuration, device)

    def __call__(self, batch: tuple[Any, ...]) -> Any:
        """Do one step; return the loss, which stays on the device."""
        loss = self._gradients(batch)
        self._update(self.optimizer, self.scaler.scaler)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss

    def without_update(self, batch: tuple[Any, ...]) -> None:
        """Make the gradients of a batch, exchange them, and forget them."""
        self._gradients(batch)
        self.optimizer.zero_grad()

    def _gradients(self, batch: tuple[Any, ...], share: int = 1) -> Any:
        """Add the gradients of a batch that is one of ``share`` equal parts; return its part of the loss."""
        with self._autocast():
            loss = self._model(*batch)
            # A whole batch has no kernel for the division.
            loss = loss / share if share > 1 else loss
        self.scaler.scaler.scale(loss).backward()
        return loss.detach()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Take back, at the end, what steps change: parameters, statistics, and states of optimizer and loss scaling.

        They are kept on the host, so that the device has no more in its memory than while it trains.
        """
        import torch

        parts, states = (self._model, part_of(self.optimizer), self.scaler.scaler), io.BytesIO()
        torch.save([part.state_dict() for part in parts], states)
        yield
        states.seek(0)
        for part, state in zip(parts, torch.load(states, map_location="cpu"), strict=True):
            part.load_state_dict(state)


class AccumulatedStep(TrainingStep):
    """The same for the parts of a batch one after the other: their gradients are exchanged with those of the last."""

    def __init__(self, configuration: Configuration, *details: Any) -> None:
        super().__init__(configuration, *details)
        self._micro_batches = configuration.micro_batches
        self._gathers_once = configuration.zero_stage == SHARDED_PARAMETERS

    def _gradients(self, batch: tuple[Any, ...], share: int = 1) -> Any:
        """Add the gradients of all parts; return the mean of their losses."""
        parts = list(zip(*(tensor.chunk(self._micro_batches) for tensor in batch), strict=True))
        losses: list[Any] = []
        for part in parts:
            with self._exchanging(len(losses) == len(parts) - 1):
                losses.append(super()._gradients(part, share=len(parts)))
        return sum(losses)

    def _exchanging(self, is_last: bool) -> AbstractContextManager[None]:
        """Return the context of a part, in which gradients are exchanged if it is the last one."""
        if hasattr(self._model, "set_requires_gradient_sync"):
            self._model.set_requires_gradient_sync(is_last)
            if self._gathers_once:
                self._model.set_reshard_after_backward(is_last)
            return nullcontext()
        exchanges = is_last or not hasattr(self._model, "no_sync")
        return nullcontext() if exchanges else self._model.no_sync()


def part_of(optimizer: Any) -> Any:
    """Return the optimizer of this rank's part of the parameters, where ranks divide its state; else itself."""
    return getattr(optimizer, "optim", optimizer)


def plain_update(optimizer: Any, scaler: Any) -> None:
    """Update by gradients that are already exchanged, or need no exchange."""
    scaler.step(optimizer)


def build_layer(configuration: Configuration, rank: int, world_size: int) -> Any:
    """Build the model, with the same initial parameters on every rank."""
    import torch

    torch.manual_seed(configuration.seed)
    layer = models.load(configuration.model).builder("torch")(configuration, rank, world_size)
    if configuration.recompute == BLOCKS_AGAIN:
        from dlperf_study.training.models._torch_transformer import recompute_blocks

        recompute_blocks(network_of(layer))
    return layer


def optimizer(configuration: Configuration, layer: Any) -> Any:
    """Return the optimizer of the configuration over what is trained in a layer."""
    return optimizer_of(configuration, trainable_parameters(layer))


def optimizer_of(configuration: Configuration, parameters: list[Any]) -> Any:
    """Return the optimizer of the configuration over parameters, or over groups of them that it updates separately."""
    import torch

    kernels = _torch.optimizer_arguments(configuration)
    if configuration.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=_training.ADAM_LEARNING_RATE, **kernels)
    momentum = _training.MOMENTUM if configuration.optimizer == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=_training.LEARNING_RATE, momentum=momentum, **kernels)


def trainable_parameters(layer: Any) -> list[Any]:
    """Return what an optimizer updates."""
    return [parameter for parameter in layer.parameters() if parameter.requires_grad]


def replicated_parameters(layer: Any) -> list[Any]:
    """Return the trainable parameters that are equal on every rank; a shard of a classifier has ``no_sync``."""
    return [parameter for parameter in trainable_parameters(layer) if not getattr(parameter, "no_sync", False)]
