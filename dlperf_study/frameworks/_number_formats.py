"""Number formats of a computation: which ones are supported, and what float32 products are really computed in."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dlperf_study.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import SCALED
from dlperf_study.wording import level

#: ``--scale_loss`` in DLPerf's scripts of 2020 for Paddle's ResNet-50 (PaddlePaddle/resnet50v1.5/scripts).
STATIC_LOSS_SCALE = 128.0
#: Where dynamic loss scaling begins; every overflow halves it, and so many steps without one double it.
FIRST_LOSS_SCALE, GROWTH_STEPS = 2.0**16, 2000
#: Errors of sums of products, relative to their norm: those of float32 are about 2e-7, those of TF32, which reads 10
#: bits of each mantissa, 3e-4, and those of bfloat16, which has 7, 2e-3.
LARGEST_ERRORS = {"float32": 5e-5, "tf32": 1e-3}
#: Of the products that are tried: [N, C, H, W] images and [C, C, k, k] weights, large enough for tensor cores.
IMAGES, WEIGHTS = (8, 64, 16, 16), (64, 64, 3, 3)
#: Variables of the environment that switch TF32 off in all libraries of NVIDIA, whatever a framework's switches say.
WITHOUT_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}
NO_PRODUCT = "the first step computed no convolution and no matrix product, so its precision is unknown"

#: ``products(images, weights, number_format)`` returns float arrays: a convolution and a matrix product.
Products = Callable[[Any, Any, str], list[Any]]


@dataclass(frozen=True)
class Output:
    """An output of a convolution or a matrix product: its number format, and its memory format if that is known."""

    number_format: str
    memory_format: str = ""


def scaling_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield why losses are not scaled in this precision."""
    precision, scaling = configuration.precision, configuration.loss_scaling
    if scaling != "none" and precision not in SCALED:
        yield f"loss_scaling {level(scaling)} is for precision {' and '.join(SCALED)}, not {level(precision)}"


def device_obstacles(configuration: Configuration, device: str) -> Iterator[str]:
    """Yield why a device does not compute in this precision."""
    if configuration.precision == "tf32" and device != "gpu":
        yield "precision tf32 is a number format of NVIDIA's tensor cores, which a CPU does not have"


def environment(configuration: Configuration, device: str) -> dict[str, str]:
    """Return the variables that keep TF32 off on GPUs, unless it is asked for."""
    return WITHOUT_TF32 if device == "gpu" and configuration.precision != "tf32" else {}


def format_of_float32(products: Products) -> str:
    """Return in what products of float32 are computed: float32 itself, tf32 or bfloat16.

    A library may compute them in fewer bits and still return float32, so their errors tell.
    """
    import numpy as np

    generator = np.random.default_rng(0)
    images, weights = (generator.standard_normal(shape, dtype=np.float32) for shape in (IMAGES, WEIGHTS))
    single, double = (products(images, weights, number_format) for number_format in ("float32", "float64"))
    error = 0.0
    for computed, exact in zip(single, double, strict=True):
        error = max(error, float(np.linalg.norm(computed - exact) / np.linalg.norm(exact)))
    return next((name for name, largest in LARGEST_ERRORS.items() if error <= largest), "bfloat16")


def first_product(layers: Iterable[Any], *kinds: type) -> Any:
    """Return the first layer of the first of these kinds that there is, or None."""
    candidates = list(layers)
    for kind in kinds:
        for layer in candidates:
            if isinstance(layer, kind):
                return layer
    return None


def observed_format(outputs: list[Output], products: Products) -> str:
    """Return the number format of a network, given the outputs of its convolution that were observed.

    Raises RunError if none was observed.
    """
    if not outputs:
        raise RunError(NO_PRODUCT)
    number_format = outputs[0].number_format
    return format_of_float32(products) if number_format == "float32" else number_format
