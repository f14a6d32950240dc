"""The interface of a library: its device, clock, number formats, memory and tensors.

The standard library and this package only: every training process imports this.
"""

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parallel_parameters import FULL_CHECKPOINTING
from dlperf_study.study.precision import LossScaling
from dlperf_study.training import models
from dlperf_study.training.models._sequences import SequenceModel

#: Small, so that tiny batches with batch norm stay finite; it has no influence on speed.
LEARNING_RATE = 0.001
MOMENTUM = 0.9
#: Of AdamW, which takes steps of this size whatever the gradients are.
ADAM_LEARNING_RATE = 0.0001
#: ``--scale_loss`` in DLPerf's scripts of 2020 for Paddle's ResNet-50 (PaddlePaddle/resnet50v1.5/scripts).
STATIC_LOSS_SCALE = 128.0
#: Where dynamic loss scaling begins; every overflow halves it, and so many steps without one double it.
FIRST_LOSS_SCALE, GROWTH_STEPS = 2.0**16, 2000
FIRST_LOSS_SCALES = {"none": FIRST_LOSS_SCALE, "dynamic": FIRST_LOSS_SCALE, "static": STATIC_LOSS_SCALE}
#: Errors of sums of products, relative to their norm: those of float32 are about 2e-7, those of TF32, which reads 10
#: bits of each mantissa, 3e-4, and those of bfloat16, which has 7, 2e-3.
LARGEST_ERRORS = {"float32": 5e-5, "tf32": 1e-3}
#: Of the products that are tried: [N, C, H, W] images and [C, C, k, k] weights, large enough for tensor cores.
IMAGES_SHAPE, WEIGHTS_SHAPE = (8, 64, 16, 16), (64, 64, 3, 3)
NO_PRODUCT = "the precision is unknown, because the first step computed no convolution and no matrix product"


class Stopwatch(Protocol):
    """Marks times in the device's stream of work without waiting for it; ``seconds`` waits, and reads them."""

    def mark(self) -> None: ...
    def seconds(self) -> list[float]: ...


class HostStopwatch:
    """A stopwatch for devices that finish an operation before they return: the CPU."""

    def __init__(self) -> None:
        self._marks: list[int] = []

    def mark(self) -> None:
        self._marks.append(time.perf_counter_ns())

    def seconds(self) -> list[float]:
        return [(end - start) / 1e9 for start, end in pairwise(self._marks)]


class EventStopwatch:
    """A stopwatch for GPUs: events in the stream of the device, so that timing a step costs no synchronisation.

    ``new_event`` makes a library's event that records time.
    """

    def __init__(self, new_event: Callable[[], Any]) -> None:
        self._new_event = new_event
        self._events: list[Any] = []

    def mark(self) -> None:
        event = self._new_event()
        event.record()
        self._events.append(event)

    def seconds(self) -> list[float]:
        self._events[-1].synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairwise(self._events)]


#: Bytes by name: ``allocated_bytes`` of tensors, ``reserved_bytes`` that were taken from the device for them.
Peaks = dict[str, int]


class Allocator(Protocol):
    """The peaks that a library's allocator counts for the device since ``restart``; empty where it counts none."""

    def restart(self) -> None: ...
    def peaks(self) -> Peaks: ...


@dataclass(frozen=True)
class Output:
    """An output of a convolution or a matrix product: its number format, and its memory format if that is known."""

    number_format: str
    memory_format: str = ""


@dataclass(frozen=True)
class Buffer:
    """Gradients that are communicated at once; ``number_format`` is a value of the library."""

    elements: int
    element_bytes: int
    number_format: Any

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * self.element_bytes


#: ``products(images, weights, number_format)`` returns float arrays: a convolution and a matrix product.
Products = Callable[[Any, Any, str], list[Any]]


class Step(Protocol):
    """A step of training: called with a batch, it returns the loss, which stays on the device.

    ``observed`` does the first step of a layer: outputs of its first product, and bytes held by kind.
    ``restored`` takes back, at the end, what steps change.
    """

    def __call__(self, batch: Any) -> Any: ...
    def observed(self, batch: Any, layer: Any) -> tuple[list[Output], dict[str, int]]: ...
    def restored(self) -> AbstractContextManager[None]: ...

    def update_kernels(self) -> dict[str, str]:
        """Return the value of ``fused_optimizer``, or nothing: some libraries can't be asked."""
        return {}

    def loss_scaling(self) -> LossScaling | None:
        """Return the state of loss scaling, or None without it."""
        return None


class Library(Protocol):
    """A library on the device of this rank, set up as a configuration asks.

    ``description``: the fields of the rank log about the library. ``autotuning``: whether cuDNN tries its algorithms.
    ``products``: see ``Products``. ``placed``: a batch as tensors on the device, images in the memory format of the
    configuration. ``built``: the model, with the same initial parameters on every rank. ``trained_parameters``: what an
    optimizer updates. ``buffer``: of the gradients of parameters, which have one number format. ``zeros``: a vector on
    the device. ``collectives``: the module that observes and repeats collectives.
    """

    name: str
    device: Any
    configuration: Configuration
    collectives: Any = None

    def description(self) -> dict[str, Any]: ...
    def uses_gpu(self) -> bool: ...
    def synchronise(self) -> None: ...
    def autotuning(self) -> str: ...
    def products(self, images: Any, weights: Any, number_format: str) -> list[Any]: ...
    def placed(self, *batch: Any) -> tuple[Any, ...]: ...
    def built(self, rank: int, ranks: int) -> Any: ...
    def trained_parameters(self, layer: Any) -> list[Any]: ...
    def buffer(self, *parameters: Any) -> Buffer: ...
    def zeros(self, elements: int, number_format: Any) -> Any: ...

    def event(self) -> Any:
        """Return an event that records time, or None."""
        return None

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for the device."""
        if self.uses_gpu():
            return EventStopwatch(self.event)
        return HostStopwatch()

    def replicated_parameters(self, layer: Any) -> list[Any]:
        """Return trained parameters without shards, which have ``no_sync``."""
        return [parameter for parameter in self.trained_parameters(layer) if not getattr(parameter, "no_sync", False)]

    def array(self, parameter: Any) -> Any:
        """Return the values of a parameter, for numpy."""
        return parameter.numpy()


def checksum(arrays: Iterable[Any]) -> str:
    """Return a digest of the arrays' bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def nccl_version(code: int) -> str:
    """Return an ``NCCL_VERSION_CODE``, as 22501 or 2804, as a version."""
    if code:
        return _version(code)
    return ""


def cudnn_version(code: int) -> str:
    """Return a ``CUDNN_VERSION``, as 90501 or 8902, as a version."""
    return _version(code)


def _version(code: int) -> str:
    thousands = 10_000 if code >= 10_000 else 1_000
    return f"{code // thousands}.{code % thousands // 100}.{code % 100}"


def error_line(error: Exception) -> str:
    """Return the line of an exception that names the error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if "error" in line.lower():
            return line
    if lines:
        return lines[0]
    return type(error).__name__


def leading_counts(counts: list[int], elements: int) -> list[int]:
    """Return how many elements of each buffer are among the first ``elements``."""
    leading: list[int] = []
    for count in counts:
        taken = min(count, elements - sum(leading))
        if taken <= 0:
            break
        leading.append(taken)
    return leading


def format_of_float32(products: Products) -> str:
    """Return the format in which float32 is multiplied."""
    # A library may compute them in fewer bits and still return float32, so their errors tell.
    import numpy as np

    generator = np.random.default_rng(0)
    images = generator.standard_normal(IMAGES_SHAPE, dtype=np.float32)
    weights = generator.standard_normal(WEIGHTS_SHAPE, dtype=np.float32)
    single, double = products(images, weights, "float32"), products(images, weights, "float64")
    error = 0.0
    for computed, exact in zip(single, double, strict=True):
        error = max(error, float(np.linalg.norm(computed - exact) / np.linalg.norm(exact)))
    for name, largest in LARGEST_ERRORS.items():
        if error <= largest:
            return name
    return "bfloat16"


def first_product(layers: Iterable[Any], *kinds: type) -> Any:
    """Return the first layer of these kinds, or None."""
    candidates = list(layers)
    for kind in kinds:
        for layer in candidates:
            if isinstance(layer, kind):
                return layer
    return None


def observed_format(outputs: list[Output], products: Products) -> str:
    """Return the number format of observed outputs; raises RunError without one."""
    if not outputs:
        raise RunError(NO_PRODUCT)
    number_format = outputs[0].number_format
    if number_format == "float32":
        return format_of_float32(products)
    return number_format


def model_facts(configuration: Configuration) -> dict[str, Any]:
    """Return the facts of the rank log about a sample's work."""
    model = models.load(configuration.model)
    facts = {"flops_per_sample": model.flops(configuration), "flops_source": model.flops_source}
    if isinstance(model, SequenceModel) and configuration.activation_checkpointing == FULL_CHECKPOINTING:
        facts["hardware_flops_per_sample"] = model.hardware_flops(configuration)
    return facts
