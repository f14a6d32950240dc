"""Paddle: its device, number formats, tensors, tuning and step, as a configuration asks and as Paddle has them."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dlperf_study.study import precision
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training import models
from dlperf_study.training.libraries import _base, _paddle_collectives
from dlperf_study.training.libraries._base import Buffer, Output
from dlperf_study.training.models import _paddle_layers
from dlperf_study.training.models._base import without_loss

#: Paddle counts memory of the host by kind and device; there is one host.
_HOST_MEMORY = ("Allocated", 0)
AUTOTUNING_FLAG = "FLAGS_cudnn_exhaustive_search"
FUSED_OPTIMIZERS = (LIBRARYS_CHOICE, "fused", "for_loop")
OPTIMIZERS = ("sgd", "momentum", "adamw")
TO_STATIC, CINN = "to_static", "cinn"


def environment_rank() -> tuple[int, int]:
    """Return rank and world size by Paddle's variables."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")), int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def gpu_support() -> GpuSupport:
    """Return what Paddle can do with the GPUs here."""
    import paddle

    if not paddle.device.is_compiled_with_cuda():
        return GpuSupport()
    names: tuple[str, ...] = ()
    obstacle = ""
    try:
        names = tuple(map(paddle.device.cuda.get_device_name, range(paddle.device.cuda.device_count())))
    # What Paddle raises where CUDA fails has no documented class.
    except Exception as error:
        obstacle = _base.error_line(error)
    version = paddle.version
    nccl = _base.nccl_version(int(version.nccl()))
    return GpuSupport(str(version.cuda()), str(version.cudnn()), nccl, names, obstacle)


class Paddle(_base.Library):
    """Paddle on the device of this process."""

    name = "paddle"
    collectives = _paddle_collectives

    def __init__(self, configuration: Configuration) -> None:
        import paddle

        self.configuration, self._paddle = configuration, paddle
        self.device: str = str(paddle.get_device())

    def set_up(self) -> None:
        """Switch TF32 and cuDNN's autotuning."""
        if self._paddle.device.is_compiled_with_cuda():
            is_on = self.configuration.precision == "tf32"
            self._paddle.base.core.set_cublas_switch(is_on)
            self._paddle.base.core.set_cudnn_switch(is_on)
        if self.configuration.cudnn_autotune != LIBRARYS_CHOICE:
            self._paddle.set_flags({AUTOTUNING_FLAG: self.configuration.cudnn_autotune == "enabled"})

    def description(self) -> dict[str, Any]:
        return {
            "library": "paddle",
            "library_version": self._paddle.__version__,
            "library_commit": self._paddle.version.commit,
            "cuda": str(self._paddle.version.cuda()),
        }

    def uses_gpu(self) -> bool:
        return self.device.startswith("gpu")

    def synchronise(self) -> None:
        if self.uses_gpu():
            self._paddle.device.synchronize()

    def event(self) -> Any:
        return self._paddle.device.Event(enable_timing=True)

    def autotuning(self) -> str:
        # A build without CUDA can't be asked.
        if self._paddle.get_flags(AUTOTUNING_FLAG)[AUTOTUNING_FLAG]:
            return "enabled"
        return "disabled"

    def products(self, images: Any, weights: Any, number_format: str) -> list[Any]:
        images, weights = (self._paddle.to_tensor(array).astype(number_format) for array in (images, weights))
        convolution = self._paddle.nn.functional.conv2d(images, weights)
        rows = images.flatten(2).flatten(0, 1)
        return [tensor.astype("float64").numpy() for tensor in (convolution, rows @ rows.T)]

    def placed(self, *batch: Any) -> tuple[Any, ...]:
        inputs, *targets = map(self._on_device, batch)
        return self.in_layout(inputs), *targets

    def in_layout(self, images: Any) -> Any:
        """Return images in the layout of Paddle's layers."""
        if self.configuration.memory_format == "nhwc":
            return images.transpose([0, 2, 3, 1])
        return images

    def trained_parameters(self, layer: Any) -> list[Any]:
        return _paddle_layers.trainable_parameters(layer)

    def buffer(self, *parameters: Any) -> Buffer:
        elements = sum(int(parameter.size) for parameter in parameters)
        return Buffer(elements, parameters[0].element_size(), parameters[0].dtype)

    def zeros(self, elements: int, number_format: Any) -> Any:
        return self._paddle.zeros([elements], number_format)

    def built(self, rank: int, ranks: int) -> Any:
        configuration = self.configuration
        self._paddle.seed(configuration.seed)
        layer = models.load(configuration.model).builder("paddle")(configuration, rank, ranks)
        if configuration.memory_format == "nhwc":
            # Weights keep their layout.
            for part in layer.sublayers():
                for name in ("_data_format", "data_format"):
                    if getattr(part, name, None) == "NCHW":
                        setattr(part, name, "NHWC")
        return layer

    def optimizer(self, parameters: list[Any]) -> Any:
        """Return the optimizer of the configuration over parameters."""
        optimizers, configuration = self._paddle.optimizer, self.configuration
        if configuration.optimizer == "momentum":
            is_fused = configuration.fused_optimizer == "fused"
            rates = (_base.LEARNING_RATE, _base.MOMENTUM)
            return optimizers.Momentum(*rates, parameters=parameters, use_multi_tensor=is_fused)
        if configuration.optimizer == "adamw":
            return optimizers.AdamW(_base.ADAM_LEARNING_RATE, parameters=parameters)
        return optimizers.SGD(_base.LEARNING_RATE, parameters=parameters)

    def decorated(self, layer: Any, optimizer: Any) -> tuple[Any, Any]:
        """Return network and optimizer, with reduced parameters if asked for."""
        # The optimizer keeps a float32 copy of them; the parameters of batch norm stay float32.
        if self.configuration.precision not in precision.REDUCED_PARAMETERS:
            return layer, optimizer
        number_format = precision.COMPUTED_IN[self.configuration.precision]
        layer, optimizer = self._paddle.amp.decorate(layer, optimizer, level="O2", dtype=number_format)
        return layer, optimizer

    def autocast(self) -> Callable[[], AbstractContextManager[Any]]:
        """Return what makes the context of a forward pass."""
        requested = self.configuration.precision
        if requested in precision.FULL:
            return nullcontext
        level = "O2" if requested in precision.REDUCED_PARAMETERS else "O1"
        return lambda: self._paddle.amp.auto_cast(level=level, dtype=precision.COMPUTED_IN[requested])

    def compile(self, layer: Any) -> None:
        """Make the network a static graph at its first call."""
        compiler = self.configuration.compiler
        if compiler in (TO_STATIC, CINN):
            backend = "CINN" if compiler == CINN else None
            self._paddle.jit.to_static(without_loss(layer), full_graph=True, backend=backend)

    def _on_device(self, array: Any) -> Any:
        if not self._paddle.is_tensor(array):
            return self._paddle.to_tensor(array)
        if self.uses_gpu():
            return array.cuda()
        return array


class TrainingStep:
    """Forward, backward and update of one batch, in the precision of the configuration.

    ``model``: the layer, wrapped so that it communicates. ``update``: by gradients that are made, without loss scaling.
    """

    def __init__(self, library: Paddle, layer: Any, model: Any, optimizer: Any, update: Callable[[], None]) -> None:
        self._layer, self._model, self.optimizer, self._update = layer, model, optimizer, update
        self._autocast = library.autocast()
        self._scaler = loss_scaler(library.configuration) if library.configuration.loss_scaling != "none" else None

    def __call__(self, batch: tuple[Any, ...]) -> Any:
        loss = self._updated(batch)
        self.optimizer.clear_grad()
        return loss

    def _updated(self, batch: tuple[Any, ...]) -> Any:
        with self._autocast():
            loss = self._model(*batch)
        if self._scaler:
            self._scaler.scale(loss).backward()
            self._scaler.step(self.optimizer)
            self._scaler.update()
        else:
            loss.backward()
            self._update()
        return loss.detach()

    def observed(self, batch: tuple[Any, ...], layer: Any) -> tuple[list[Output], dict[str, int]]:
        held: dict[str, int] = {}
        with observed_outputs(layer) as outputs:
            self._updated(batch)
        if not (self._scaler and self._scaler.skipped_steps):
            held = held_bytes(_paddle_layers.trainable_parameters(layer), self.optimizer)
        self.optimizer.clear_grad()
        return outputs, held

    def update_kernels(self) -> dict[str, str]:
        return {"fused_optimizer": parameter_update(self.optimizer)}

    def loss_scaling(self) -> precision.LossScaling | None:
        state: precision.LossScaling | None = self._scaler.state() if self._scaler else None
        return state

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Take back what steps change, at the end; it is kept on the host."""
        layer_state, optimizer_state = self._layer.state_dict(), self.optimizer.state_dict()
        tensors = [*layer_state.values(), *optimizer_state.pop("master_weights", {}).values()]
        tensors += optimizer_state.values()
        values = [tensor.numpy() for tensor in tensors]
        scaling = self._scaler.state_dict() if self._scaler else {}
        yield
        for tensor, value in zip(tensors, values, strict=True):
            tensor.set_value(value)
        if self._scaler:
            self._scaler.load_state_dict(scaling)


def loss_scaler(configuration: Configuration) -> Any:
    """Return what scales the loss and counts skipped steps."""
    import paddle

    class LossScaler(paddle.amp.GradScaler):  # type: ignore[misc]
        """Paddle's scaler, which prints where it lowers the scale: with numpy 2.4 that ends the training."""

        skipped_steps = 0
        _scale: Any
        _incr_count: int
        _decr_count: int

        def update(self) -> None:
            """End a step: adapt the scale unless it is constant."""
            self.skipped_steps += bool(self._cache_found_inf)
            super().update()

        def _update(self) -> None:
            """Lower or raise the scale as Paddle 3.0 does."""
            has_overflow = bool(self._cache_found_inf)
            self._decr_count = self._decr_count + 1 if has_overflow else 0
            self._incr_count = 0 if has_overflow else self._incr_count + 1
            if self._decr_count == self._decr_every_n_nan_or_inf:
                self._scale, self._decr_count = self._scale * self._decr_ratio, 0
            elif self._incr_count == self._incr_every_n_steps:
                self._scale, self._incr_count = self._scale * self._incr_ratio, 0

        def state(self) -> precision.LossScaling | None:
            """Return the state of loss scaling, or None."""
            if self._enable:
                return precision.LossScaling(self._scale.item(), self.skipped_steps)
            return None

    scaling = configuration.loss_scaling
    return LossScaler(
        init_loss_scaling=_base.FIRST_LOSS_SCALES[scaling],
        incr_every_n_steps=_base.GROWTH_STEPS,
        use_dynamic_loss_scaling=scaling != "static",
    )


@contextmanager
def observed_outputs(layer: Any) -> Iterator[list[Output]]:
    """Yield a list of what is observed of the first product's outputs."""
    from paddle import nn

    outputs: list[Output] = []

    def observe(product: Any, inputs: Any, output: Any) -> None:
        channels = getattr(product, "_out_channels", 0)
        outputs.append(Output(format_name(output.dtype), memory_format(output, channels)))

    product = _base.first_product(layer.sublayers(), nn.Conv2D, nn.Linear)
    hook = product.register_forward_post_hook(observe) if product else None
    yield outputs
    if hook:
        hook.remove()


def format_name(dtype: Any) -> str:
    """Return the name of a number format of either class."""
    return str(dtype).rpartition(".")[2].lower()


def held_bytes(parameters: list[Any], optimizer: Any) -> dict[str, int]:
    """Return the bytes held by kind."""
    # Of parameters with fewer bits than float32 the float32 copies are part of the optimizer's state.
    states = optimizer.state_dict()
    states.update(states.pop("master_weights", {}))
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    tensors = {"weights": parameters, "gradients": gradients, "optimizer": states.values()}
    return {
        kind: sum(int(tensor.size) * tensor.element_size() for tensor in of_kind) for kind, of_kind in tensors.items()
    }


class PaddleAllocator:
    """Paddle counts on GPUs and on CPUs; on CPUs it takes from the host just what it allocates."""

    def restart(self) -> None:
        import paddle

        if paddle.get_device().startswith("gpu"):
            paddle.device.cuda.reset_max_memory_allocated()
            paddle.device.cuda.reset_max_memory_reserved()
        else:
            paddle.base.core.host_memory_stat_reset_peak_value(*_HOST_MEMORY)

    def peaks(self) -> _base.Peaks:
        import paddle

        if not paddle.get_device().startswith("gpu"):
            return {"allocated_bytes": paddle.base.core.host_memory_stat_peak_value(*_HOST_MEMORY)}
        cuda = paddle.device.cuda
        return {"allocated_bytes": cuda.max_memory_allocated(), "reserved_bytes": cuda.max_memory_reserved()}


def parameter_update(optimizer: Any) -> str:
    """Return how an optimizer updates: ``fused`` or ``for_loop``."""
    # Its lists of parameters for the one call of all are filled in its first update, if it makes this call.
    lists = getattr(optimizer, "_param_dict", {})
    if any(groups[0] for groups in lists.values()):
        return "fused"
    return "for_loop"


def memory_format(features: Any, channels: int) -> str:
    """Return the order of dimensions; nothing if sizes leave it open."""
    formats = {"nchw": 1, "nhwc": -1}
    fitting = [name for name, axis in formats.items() if features.ndim == 4 and features.shape[axis] == channels]
    if len(fitting) == 1:
        return fitting[0]
    return ""


def cinn_obstacle() -> str:
    """Return why Paddle can't compile with CINN here, or nothing."""
    import paddle

    if paddle.is_compiled_with_cinn():
        return ""
    return f"paddlepaddle {paddle.__version__} is built without CINN (paddle.is_compiled_with_cinn() is False)"
