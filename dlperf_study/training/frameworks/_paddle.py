"""Paddle: its devices, networks, number formats, tuning and compilers, as asked for and as Paddle has them."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from dlperf_study.core.user_commands import make_or
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.precision import COMPUTED_IN, FULL, REDUCED_PARAMETERS, LossScaling
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE
from dlperf_study.training import models
from dlperf_study.training.frameworks import _training
from dlperf_study.training.frameworks._base import (
    EventStopwatch,
    HostStopwatch,
    Peaks,
    Stopwatch,
    nccl_version,
    obstacle_of,
)
from dlperf_study.training.frameworks._training import (
    FIRST_LOSS_SCALE,
    GROWTH_STEPS,
    STATIC_LOSS_SCALE,
    Output,
    model_facts,
)
from dlperf_study.training.models._base import network_of

PACKAGES = ("paddlepaddle-gpu", "paddlepaddle")
GPU_REMEDY = make_or("gpu PADDLE_INDEX=ADDRESS", "pip install paddlepaddle-gpu --extra-index-url ADDRESS")
ENVIRONMENT_PREFIXES = ("FLAGS_", "GLOG_")
#: Paddle counts memory of the host by kind and device; there is one host.
_HOST_MEMORY = ("Allocated", 0)


def environment_rank() -> tuple[int, int]:
    """Return (rank, world size) as Paddle's launcher and parameter-server protocol name them."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")), int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def uses_gpu() -> bool:
    """Return whether this process trains on a GPU."""
    import paddle

    return str(paddle.get_device()).startswith("gpu")


def gpu_support() -> GpuSupport:
    """Return what Paddle can do with the GPUs that this process may use."""
    import paddle

    if not paddle.device.is_compiled_with_cuda():
        return GpuSupport()
    names: tuple[str, ...] = ()
    obstacle = ""
    try:
        names = tuple(map(paddle.device.cuda.get_device_name, range(paddle.device.cuda.device_count())))
    # What Paddle raises where CUDA fails has no documented class.
    except Exception as error:
        obstacle = obstacle_of(error)
    version = paddle.version
    nccl = nccl_version(int(version.nccl()))
    return GpuSupport(str(version.cuda()), str(version.cudnn()), nccl, names, obstacle)


def move_to_device(values: Any) -> Any:
    """Return an array of numpy, or a tensor, as a tensor on this process's device; a tensor there is not copied."""
    import paddle

    if not paddle.is_tensor(values):
        return paddle.to_tensor(values)
    return values.cuda() if uses_gpu() else values


def stopwatch() -> Stopwatch:
    """Return the stopwatch of this process's device."""
    if not uses_gpu():
        return HostStopwatch()
    from paddle.device import Event

    return EventStopwatch(partial(Event, enable_timing=True))


def synchronise() -> None:
    """Wait for the device; on a CPU there is nothing to wait for."""
    import paddle

    if uses_gpu():
        paddle.device.synchronize()


def build_layer(configuration: Configuration) -> Any:
    """Build the model, with the same initial parameters on every rank."""
    import paddle

    rank, world_size = environment_rank()
    paddle.seed(configuration.seed)
    layer = models.load(configuration.model).builder("paddle")(configuration, rank, world_size)
    return _convert_to_channels_last(layer) if configuration.memory_format == "nhwc" else layer


def in_layout(configuration: Configuration, images: Any) -> Any:
    """Return a tensor of images [N, 3, S, S] as Paddle's layers take it: with ``nhwc``, [N, S, S, 3]."""
    return images.transpose([0, 2, 3, 1]) if configuration.memory_format == "nhwc" else images


def _convert_to_channels_last(layer: Any) -> Any:
    """Make every layer of a network take and return features [N, H, W, C]; weights keep their layout."""
    for part in layer.sublayers():
        for name in ("_data_format", "data_format"):
            if getattr(part, name, None) == "NCHW":
                setattr(part, name, "NHWC")
    return layer


def description(
    configuration: Configuration, parameters: int, gradient_bytes: int, exchange_threads: int
) -> dict[str, Any]:
    """Return the part of the ``rank`` line that is the same for every Paddle framework."""
    import paddle

    return {
        "library": "paddle",
        "library_version": paddle.__version__,
        "library_commit": paddle.version.commit,
        "cuda": str(paddle.version.cuda()),
        "device": "gpu" if uses_gpu() else "cpu",
        "parameters": parameters,
        "gradient_bytes": gradient_bytes,
        "exchange_threads": exchange_threads,
    } | model_facts(configuration)


def held_bytes(parameters: list[Any], optimizer: Any) -> dict[str, int]:
    """Return the bytes that this rank holds of parameters and their gradients, and of the optimizer's state.

    Of parameters with fewer bits than float32 the float32 copies are part of the optimizer's state.
    """
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
        """Count peaks from what is allocated now."""
        import paddle

        if uses_gpu():
            paddle.device.cuda.reset_max_memory_allocated()
            paddle.device.cuda.reset_max_memory_reserved()
        else:
            paddle.base.core.host_memory_stat_reset_peak_value(*_HOST_MEMORY)

    def peaks(self) -> Peaks:
        """Return the peaks since ``restart``."""
        import paddle

        if not uses_gpu():
            return {"allocated_bytes": paddle.base.core.host_memory_stat_peak_value(*_HOST_MEMORY)}
        cuda = paddle.device.cuda
        return {"allocated_bytes": cuda.max_memory_allocated(), "reserved_bytes": cuda.max_memory_reserved()}


def set_tf32(configuration: Configuration) -> None:
    """Switch TF32 on or off in cuBLAS and cuDNN; a build without CUDA has no such switch."""
    import paddle

    if paddle.device.is_compiled_with_cuda():
        is_on = configuration.precision == "tf32"
        paddle.base.core.set_cublas_switch(is_on)
        paddle.base.core.set_cudnn_switch(is_on)


def decorated(configuration: Configuration, layer: Any, optimizer: Any) -> tuple[Any, Any]:
    """Return a network and its optimizer with parameters in the number format of the computation, if it asks for that.

    The optimizer keeps a float32 copy of them; the parameters of batch norm stay float32.
    """
    import paddle

    if configuration.precision not in REDUCED_PARAMETERS:
        return layer, optimizer
    number_format = COMPUTED_IN[configuration.precision]
    layer, optimizer = paddle.amp.decorate(layer, optimizer, level="O2", dtype=number_format)
    return layer, optimizer


def autocast(configuration: Configuration) -> Callable[[], AbstractContextManager[Any]]:
    """Return what makes the context of a forward pass; Paddle computes the losses in float32."""
    import paddle

    if configuration.precision in FULL:
        return nullcontext
    level = "O2" if configuration.precision in REDUCED_PARAMETERS else "O1"
    return lambda: paddle.amp.auto_cast(level=level, dtype=COMPUTED_IN[configuration.precision])


def loss_scaler(configuration: Configuration) -> Any:
    """Return what scales the loss as a configuration asks, and counts the steps that updated nothing."""
    import paddle

    class LossScaler(paddle.amp.GradScaler):  # type: ignore[misc]
        """Paddle's scaler, which prints where it lowers the scale: with numpy 2.4 that ends the training."""

        skipped_steps = 0
        _scale: Any
        _incr_count: int
        _decr_count: int

        def update(self) -> None:
            """End a step: adapt the scale, unless it is a constant."""
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

        def state(self) -> LossScaling | None:
            """Return the scale and the number of skipped steps; None if Paddle has switched the scaler off."""
            return LossScaling(self._scale.item(), self.skipped_steps) if self._enable else None

    is_static = configuration.loss_scaling == "static"
    return LossScaler(
        init_loss_scaling=STATIC_LOSS_SCALE if is_static else FIRST_LOSS_SCALE,
        incr_every_n_steps=GROWTH_STEPS,
        use_dynamic_loss_scaling=not is_static,
    )


@contextmanager
def observed_outputs(layer: Any) -> Iterator[list[Output]]:
    """Yield a list that gets what is observed of each output of the first convolution of a network.

    Of a network without convolutions, of its first fully connected layer.
    """
    from paddle import nn

    outputs: list[Output] = []

    def observe(product: Any, inputs: Any, output: Any) -> None:
        channels = getattr(product, "_out_channels", 0)
        outputs.append(Output(format_name(output.dtype), memory_format(output, channels)))

    product = _training.first_product(layer.sublayers(), nn.Conv2D, nn.Linear)
    hook = product.register_forward_post_hook(observe) if product else None
    yield outputs
    if hook:
        hook.remove()


def products(images: Any, weights: Any, number_format: str) -> list[Any]:
    """Return a convolution and a matrix product: ``Products`` of ``_training.py``."""
    import paddle

    images, weights = (paddle.to_tensor(array).astype(number_format) for array in (images, weights))
    convolution = paddle.nn.functional.conv2d(images, weights)
    rows = images.flatten(2).flatten(0, 1)
    return [tensor.astype("float64").numpy() for tensor in (convolution, rows @ rows.T)]


def format_name(dtype: Any) -> str:
    """Return the name of a number format: Paddle has two classes of them."""
    return str(dtype).rpartition(".")[2].lower()


AUTOTUNING_FLAG = "FLAGS_cudnn_exhaustive_search"
FUSED_OPTIMIZERS = (LIBRARYS_CHOICE, "fused", "for_loop")
OPTIMIZERS = ("sgd", "momentum", "adamw")
#: The classes of Paddle's optimizers that update one parameter after the other, whatever they are told.
WITHOUT_FUSION = {"sgd": "SGD", "adamw": "AdamW"}


def set_autotuning(configuration: Configuration) -> None:
    """Let cuDNN try its algorithms, or not; by default Paddle decides."""
    import paddle

    if configuration.cudnn_autotune != LIBRARYS_CHOICE:
        paddle.set_flags({AUTOTUNING_FLAG: configuration.cudnn_autotune == "enabled"})


def autotuning() -> str:
    """Return whether Paddle lets cuDNN try its algorithms; a build without CUDA can't be asked."""
    import paddle

    return "enabled" if paddle.get_flags(AUTOTUNING_FLAG)[AUTOTUNING_FLAG] else "disabled"


def parameter_update(optimizer: Any) -> str:
    """Return how the updates of an optimizer go over the parameters: ``fused`` or ``for_loop``.

    Its lists of parameters for the one call of all are filled in its first update, if it makes this call.
    """
    lists = getattr(optimizer, "_param_dict", {})
    return "fused" if any(groups[0] for groups in lists.values()) else "for_loop"


def memory_format(features: Any, channels: int) -> str:
    """Return the order of the dimensions of features with so many channels; nothing if their sizes leave it open."""
    formats = {"nchw": 1, "nhwc": -1}
    fitting = [name for name, axis in formats.items() if features.ndim == 4 and features.shape[axis] == channels]
    return fitting[0] if len(fitting) == 1 else ""


TO_STATIC, CINN = "to_static", "cinn"


def cinn_obstacle() -> str:
    """Return why Paddle can't compile with CINN here, or nothing."""
    import paddle

    if paddle.is_compiled_with_cinn():
        return ""
    return f"paddlepaddle {paddle.__version__} is built without CINN (paddle.is_compiled_with_cinn() is False)"


def compile_network(configuration: Configuration, layer: Any) -> None:
    """Make the network of a layer a static graph, which is traced at its first call; the loss stays dynamic."""
    import paddle

    if configuration.compiler in (TO_STATIC, CINN):
        backend = "CINN" if configuration.compiler == CINN else None
        paddle.jit.to_static(network_of(layer), full_graph=True, backend=backend)
