"""Number formats in Paddle: its AMP, TF32, loss scaling, and in what a network really computes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dlperf_study.frameworks import _number_formats
from dlperf_study.frameworks._base import LossScaling
from dlperf_study.frameworks._number_formats import FIRST_LOSS_SCALE, GROWTH_STEPS, STATIC_LOSS_SCALE, Output
from dlperf_study.frameworks._paddle_tuning import memory_format
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import COMPUTED_IN, FULL, REDUCED_PARAMETERS

#: What Paddle 3.0 warns of where it trains on a CPU in float32 instead.
CPU_REASON = "amp_guard can only be enabled on CUDAPlace, XPUPlace, and CustomPlace"


def obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield each reason why Paddle does not train in this precision on a device."""
    yield from _number_formats.scaling_obstacles(configuration)
    yield from _number_formats.device_obstacles(configuration, device)
    if configuration.precision not in FULL and device != "gpu":
        yield f"precision {configuration.precision}: Paddle trains in it on GPUs only ({CPU_REASON!r})"


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

    product = _number_formats.first_product(layer.sublayers(), nn.Conv2D, nn.Linear)
    hook = product.register_forward_post_hook(observe) if product else None
    yield outputs
    if hook:
        hook.remove()


def products(images: Any, weights: Any, number_format: str) -> list[Any]:
    """Return a convolution and a matrix product: ``Products`` of ``_number_formats.py``."""
    import paddle

    images, weights = (paddle.to_tensor(array).astype(number_format) for array in (images, weights))
    convolution = paddle.nn.functional.conv2d(images, weights)
    rows = images.flatten(2).flatten(0, 1)
    return [tensor.astype("float64").numpy() for tensor in (convolution, rows @ rows.T)]


def format_name(dtype: Any) -> str:
    """Return the name of a number format: Paddle has two classes of them."""
    return str(dtype).rpartition(".")[2].lower()
