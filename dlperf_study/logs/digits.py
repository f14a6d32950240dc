"""Numbers of many lines at once, out of columns of digits; each equal to what ``float`` makes of its text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.arrays import Floats, Integers, Mask
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.layouts import ZERO, windows

#: A whole number of so many digits, and a power of ten so large, are exact as floats: then so is their quotient,
#: rounded once (Clinger, "How to read floating point numbers accurately", PLDI 1990).
EXACT_DIGITS, EXACT_POWER = 15, 22
_PARTS = re.compile(rb"([-+]?)(\d*)(\.?)(\d*)(?:[eE]([-+]?)(\d+))?")


@dataclass(frozen=True)
class Shape:
    """What the digits of a number stand for: all numbers of one shape are read alike."""

    sign: bytes
    whole: int
    point: int
    fraction: int
    exponent_sign: bytes
    exponent: int

    @property
    def is_exact(self) -> bool:
        """Whether its digits fit a float, and its exponent is worth a look."""
        return self.whole + self.fraction <= EXACT_DIGITS and self.exponent <= 2

    @property
    def mantissa_width(self) -> int:
        """Characters of the digits, with their point."""
        return self.whole + self.point + self.fraction


@dataclass(frozen=True)
class Numbers:
    """A column: the numbers, which rows have one, and which are valid: absent, or a number."""

    values: Floats
    present: Mask
    valid: Mask


def read_numbers(block: Block, starts: Integers, texts: Sequence[bytes | None], counts: Integers) -> Numbers:
    """Return the numbers at some places of a block.

    Args:
        block: where they stand
        starts: where each begins, those of one layout after those of another; shape (rows,)
        texts: the number of the first line of each layout, None where the layout has none
        counts: how many rows each layout has

    """
    values = np.full(starts.size, np.nan)
    valid = np.ones(starts.size, dtype=bool)
    present = np.repeat(np.array([text is not None for text in texts], dtype=bool), counts)
    shapes = [shape_of(text) if text else text for text in texts]
    kinds = {shape: kind for kind, shape in enumerate(dict.fromkeys(shapes))}
    kind_of_row = np.repeat([kinds[shape] for shape in shapes], counts)
    for shape, kind in kinds.items():
        rows = slice(None) if len(kinds) == 1 else kind_of_row == kind
        if isinstance(shape, Shape):
            values[rows] = _read(block, starts[rows], shape)
        elif shape is not None:
            values[rows], valid[rows] = _float(shape)
    return Numbers(values, present, valid)


def shape_of(text: bytes) -> Shape | bytes:
    """Return the shape of a number; of anything else, its text."""
    match = _PARTS.fullmatch(text)
    if not match or not match[2] + match[4]:
        return text
    sign, whole, point, fraction, exponent_sign, exponent = match.groups(b"")
    return Shape(sign, len(whole), len(point), len(fraction), exponent_sign, len(exponent))


def _read(block: Block, starts: Integers, shape: Shape) -> Floats:
    if not shape.is_exact:
        return _one_by_one(block, starts, shape)
    first = starts + len(shape.sign)
    weights = np.insert(_powers(shape.whole + shape.fraction), [shape.whole] * shape.point, 0.0)
    mantissa = weighted(block, first, weights)
    sign = -1.0 if shape.sign == b"-" else 1.0
    if not shape.exponent:
        return np.asarray(sign * mantissa / 10.0**shape.fraction, dtype=np.float64)
    power = _exponents(block, first, shape) - shape.fraction
    scale = np.power(10.0, np.abs(power))
    values: Floats = np.asarray(sign * np.where(power < 0, mantissa / scale, mantissa * scale), dtype=np.float64)
    far = np.abs(power) > EXACT_POWER
    values[far] = _one_by_one(block, starts[far], shape)
    return values


def _exponents(block: Block, first: Integers, shape: Shape) -> Floats:
    behind = first + shape.mantissa_width + 1 + len(shape.exponent_sign)
    exponents = weighted(block, behind, _powers(shape.exponent))
    return exponents * (-1.0 if shape.exponent_sign == b"-" else 1.0)


def _powers(count: int) -> Floats:
    return np.asarray(10.0 ** np.arange(count)[::-1], dtype=np.float64)


def weighted(block: Block, starts: Integers, weights: Floats) -> Floats:
    """Return the sum of digit × weight over the characters from each start on; what is no digit has weight 0."""
    characters = windows(np.frombuffer(block.data, np.uint8), starts, weights.size)
    total: Floats = (characters - np.uint8(ZERO)).astype(np.float64) @ weights
    return total


def _one_by_one(block: Block, starts: Integers, shape: Shape) -> Floats:
    tail = 1 + len(shape.exponent_sign) + shape.exponent if shape.exponent else 0
    width = len(shape.sign) + shape.mantissa_width + tail
    texts = windows(np.frombuffer(block.data, np.uint8), starts, width).view(f"S{width}").ravel()
    return np.array(list(map(float, texts.tolist())))


def _float(text: bytes) -> tuple[float, bool]:
    """Return what letters say, infinite or nan; what has digits and no shape is no number, whatever ``float`` says."""
    try:
        return (np.nan, False) if b"_" in text else (float(text), True)
    except ValueError:
        return np.nan, False
