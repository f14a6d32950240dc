"""What the trainers of all libraries share: hyperparameters, digests of parameters, and number formats."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parallel_parameters import BLOCKS_AGAIN
from dlperf_study.training import models
from dlperf_study.training.models._sequences import SequenceModel

#: Small, so that tiny batches with batch norm stay finite; it has no influence on speed.
LEARNING_RATE = 0.001
MOMENTUM = 0.9
#: Of AdamW, which takes steps of this size whatever the gradients are.
ADAM_LEARNING_RATE = 0.0001


def checksum(arrays: list[Any]) -> str:
    """Return a digest of the arrays' bytes, in the order given."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def leading_counts(counts: list[int], elements: int) -> list[int]:
    """Return how many elements of successive buffers are among the first ``elements``; buffers after them are left out.

    ``counts`` are the numbers of elements of the buffers.
    """
    leading: list[int] = []
    for count in counts:
        taken = min(count, elements - sum(leading))
        if taken <= 0:
            break
        leading.append(taken)
    return leading


def model_facts(configuration: Configuration) -> dict[str, Any]:
    """Return the fields of the rank log about the work of one sample; what is done again, if something is."""
    model = models.load(configuration.model)
    facts = {"flops_per_sample": model.flops(configuration), "flops_source": model.flops_source}
    if isinstance(model, SequenceModel) and configuration.recompute == BLOCKS_AGAIN:
        facts["hardware_flops_per_sample"] = model.hardware_flops(configuration)
    return facts


#: ``--scale_loss`` in DLPerf's scripts of 2020 for Paddle's ResNet-50 (PaddlePaddle/resnet50v1.5/scripts).
STATIC_LOSS_SCALE = 128.0
#: Where dynamic loss scaling begins; every overflow halves it, and so many steps without one double it.
FIRST_LOSS_SCALE, GROWTH_STEPS = 2.0**16, 2000
#: Errors of sums of products, relative to their norm: those of float32 are about 2e-7, those of TF32, which reads 10
#: bits of each mantissa, 3e-4, and those of bfloat16, which has 7, 2e-3.
LARGEST_ERRORS = {"float32": 5e-5, "tf32": 1e-3}
#: Of the products that are tried: [N, C, H, W] images and [C, C, k, k] weights, large enough for tensor cores.
IMAGES_SHAPE, WEIGHTS_SHAPE = (8, 64, 16, 16), (64, 64, 3, 3)
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


def tf32_environment(configuration: Configuration, device: str) -> dict[str, str]:
    """Return the variables that keep TF32 off on GPUs, unless it is asked for."""
    return WITHOUT_TF32 if device == "gpu" and configuration.precision != "tf32" else {}


def format_of_float32(products: Products) -> str:
    """Return in what products of float32 are computed: float32 itself, tf32 or bfloat16.

    A library may compute them in fewer bits and still return float32, so their errors tell.
    """
    import numpy as np

    generator = np.random.default_rng(0)
    images, weights = (generator.standard_normal(shape, dtype=np.float32) for shape in (IMAGES_SHAPE, WEIGHTS_SHAPE))
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


def observed_memory_format(outputs: list[Output]) -> dict[str, str]:
    """Return the memory format of the first output that was observed, as ``tuning`` of a trainer does."""
    return {"memory_format": outputs[0].memory_format} if outputs and outputs[0].memory_format else {}
