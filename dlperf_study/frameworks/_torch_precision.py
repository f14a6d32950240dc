"""Number formats in PyTorch: autocast, TF32, loss scaling, and in what a network really computes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dlperf_study.frameworks._base import LossScaling
from dlperf_study.frameworks._number_formats import (
    FIRST_LOSS_SCALE,
    GROWTH_STEPS,
    STATIC_LOSS_SCALE,
    Output,
    first_product,
)
from dlperf_study.frameworks._torch_tuning import memory_format
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import COMPUTED_IN, FULL


def set_tf32(configuration: Configuration) -> None:
    """Switch TF32 on or off in cuBLAS and cuDNN; on a CPU, oneDNN computes float32 in float32."""
    import torch

    products = "tf32" if configuration.precision == "tf32" else "ieee"
    torch.backends.cuda.matmul.fp32_precision = products
    torch.backends.cudnn.conv.fp32_precision = products
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"
    torch.backends.mkldnn.conv.fp32_precision = "ieee"


def autocast(configuration: Configuration, device: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Return what makes the context of a forward pass; the losses compute in float32 themselves."""
    import torch

    if configuration.precision in FULL:
        return nullcontext
    number_format = getattr(torch, COMPUTED_IN[configuration.precision])
    return lambda: torch.autocast(device.type, number_format)


class LossScaler:
    """Scales the loss as a configuration asks, and counts the steps that updated nothing."""

    def __init__(self, configuration: Configuration, optimizer: Any, device: Any) -> None:
        import torch

        self._static = configuration.loss_scaling == "static"
        self._skipped_steps, self._has_updated = 0, False
        #: A fused update looks itself whether gradients are finite; to ask the device in every step would be a wait.
        self._found_infinite: Any = 0
        self._skipped_by_kernels: Any = 0
        scale = STATIC_LOSS_SCALE if self._static else FIRST_LOSS_SCALE
        enabled = configuration.loss_scaling != "none"
        self.scaler = torch.amp.GradScaler(device.type, scale, growth_interval=GROWTH_STEPS, enabled=enabled)
        # The scaler leaves the optimizer's step out when a gradient is not finite.
        optimizer.register_step_post_hook(self._note_update)

    def update(self) -> None:
        """End a step: adapt the scale, or keep it where it is a constant."""
        self._skipped_steps += not self._has_updated
        self._skipped_by_kernels = self._skipped_by_kernels + self._found_infinite
        self._has_updated, self._found_infinite = False, 0
        if self._static:
            self.scaler.update(STATIC_LOSS_SCALE)
        else:
            self.scaler.update()

    def state(self) -> LossScaling | None:
        """Return the scale and the number of skipped steps, or None without loss scaling."""
        if not self.scaler.is_enabled():
            return None
        return LossScaling(self.scaler.get_scale(), self._skipped_steps + int(self._skipped_by_kernels))

    def _note_update(self, optimizer: Any, *_: Any) -> None:
        self._has_updated = True
        self._found_infinite = getattr(optimizer, "found_inf", 0)


@contextmanager
def observed_outputs(layer: Any) -> Iterator[list[Output]]:
    """Yield a list that gets what is observed of each output of the first convolution of a network.

    Of a network without convolutions, of its first fully connected layer.
    """
    from torch import nn

    outputs: list[Output] = []

    def observe(_: Any, inputs: Any, output: Any) -> None:
        outputs.append(observed(output))

    product = first_product(layer.modules(), nn.Conv2d, nn.Linear)
    hook = product.register_forward_hook(observe) if product else None
    yield outputs
    if hook:
        hook.remove()


def observed(tensor: Any) -> Output:
    """Return what is observed of an output."""
    return Output(str(tensor.dtype).removeprefix("torch."), memory_format(tensor))


def products(device: Any) -> Callable[[Any, Any, str], list[Any]]:
    """Return what computes a convolution and a matrix product on a device: ``Products`` of ``_number_formats.py``."""
    import torch

    def computed(images: Any, weights: Any, number_format: str) -> list[Any]:
        kind = getattr(torch, number_format)
        images, weights = (torch.from_numpy(array).to(device, kind) for array in (images, weights))
        convolution = torch.nn.functional.conv2d(images, weights)
        product = images.flatten(2).flatten(0, 1) @ images.flatten(2).flatten(0, 1).T
        return [tensor.double().cpu().numpy() for tensor in (convolution, product)]

    return computed
