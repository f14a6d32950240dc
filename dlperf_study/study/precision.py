"""The values of the parameter ``precision``: what networks compute in, and what other programs call them."""

from dataclasses import dataclass

#: The number format of the output of a convolution or a matrix product, by precision. ``tf32`` is float32 of which
#: these read 10 bits of the mantissa.
COMPUTED_IN = {
    "fp32": "float32",
    "tf32": "tf32",
    "amp_fp16": "float16",
    "amp_bf16": "bfloat16",
    "amp_fp16_o2": "float16",
    "amp_bf16_o2": "bfloat16",
}
#: Precisions in which gradients may be too small for their number format, so that the loss may be scaled.
SCALED = ("amp_fp16", "amp_fp16_o2")
#: Precisions in which parameters and gradients have the format of the computation; those of batch norm stay float32.
REDUCED_PARAMETERS = ("amp_fp16_o2", "amp_bf16_o2")
#: Precisions of which no part is computed in a format of 16 bits.
FULL = ("fp32", "tf32")

#: Names of precisions elsewhere, in lower case, and the value here.
_PRECISIONS = {
    **{value: value for value in COMPUTED_IN},
    "float32": "fp32",
    "fp16": "amp_fp16",
    "amp": "amp_fp16",
    "amp_o1": "amp_fp16",
    "bf16": "amp_bf16",
    "pure_fp16": "amp_fp16_o2",
    "amp_o2": "amp_fp16_o2",
    "pure_bf16": "amp_bf16_o2",
}


@dataclass(frozen=True)
class LossScaling:
    """The factor of the loss, and how many steps updated nothing."""

    scale: float
    skipped_steps: int


def canonical_precision(precision: str) -> str:
    """Return the value of ``precision`` for another program's name."""
    return _PRECISIONS.get(precision.lower(), precision)
