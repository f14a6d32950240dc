"""Line layouts: lines that differ only in their digits match the same patterns.

A pattern is tried on one line per layout; ``read_numbers`` then reads the numbers of all lines from columns of digits,
equal to what ``float`` returns. Patterns must not require a particular digit.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dlperf_study.core.arrays import Floats, Integers, Mask
from dlperf_study.logs.blocks import Block

#: Longer lines are each a layout of their own.
LONGEST_COMPARED = 512
ZERO = ord("0")
#: An integer of so many digits, and a power of ten so large, are exact as floats; then so is their quotient,
#: rounded once (Clinger, "How to read floating point numbers accurately", PLDI 1990).
EXACT_DIGITS, EXACT_POWER = 15, 22
#: Lines are compared as 64-bit words.
_WORD_BYTES = 8
#: How many layouts of one length are found by comparing all lines with the first.
_ROUNDS = 8
#: Possessive, so that the digits are divided in one way only: trying all takes time quadratic in their number.
_THOUSANDS = re.compile(rb"\d{1,3}(?:,\d{3})+(\.\d+)?")
_NUMBER_PARTS = re.compile(rb"([-+]?)(\d*+)(\.?)(\d*+)(?:[eE]([-+]?)(\d++))?")

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class LineLayout:
    """Lines of a block that differ only in digits; ``text`` is the first."""

    lines: Integers
    text: bytes


def group_by_layout(block: Block, lines: Integers) -> list[LineLayout]:
    """Return these lines of a block, grouped by layout."""
    lengths = (block.ends - block.starts)[lines]
    is_short = (lengths > 0) & (lengths <= LONGEST_COMPARED)
    layouts = []
    for index in np.flatnonzero(lengths > LONGEST_COMPARED):
        layouts.append(LineLayout(lines[index : index + 1], block.line(lines[index])))
    if is_short.any():
        # Every digit is a 0, padded by the width of the longest window.
        masked = np.zeros(len(block.data) + LONGEST_COMPARED, dtype=np.uint8)
        characters = np.subtract(np.frombuffer(block.data, np.uint8), ZERO, out=masked[: len(block.data)])
        characters *= characters > 9
        lines, lengths = lines[is_short], lengths[is_short].astype(np.uint16)
        order = np.argsort(lengths, kind="stable")
        ends = np.flatnonzero(np.diff(lengths[order])) + 1
        for indices in np.split(order, ends):
            same_length = lines[indices]
            for members in _equal_texts(masked, block.starts[same_length], int(lengths[indices[0]])):
                layouts.append(LineLayout(same_length[members], block.line(same_length[members[0]])))
    return layouts


def byte_windows(data: Bytes, starts: Integers, width: int) -> Bytes:
    """Return the ``width`` bytes from each start on; shape (starts, width)."""
    all_windows = np.ndarray((data.size - width + 1,), f"V{width}", data, 0, (1,))
    return all_windows[starts].view(np.uint8).reshape(starts.size, width)


def _equal_texts(masked: Bytes, starts: Integers, length: int) -> Iterator[Integers]:
    """Yield indices of lines of one length, grouped by non-digit bytes."""
    characters = byte_windows(masked, starts, -(-length // _WORD_BYTES) * _WORD_BYTES)
    characters[:, length:] = 0
    packed, remaining = characters.view(np.uint64), np.arange(starts.size)
    for _ in range(_ROUNDS):
        equals_first = np.ones(len(packed), dtype=bool)
        # Column by column, because numpy is slow with short rows.
        for column in packed.T:
            equals_first &= column == column[0]
        yield remaining[equals_first]
        packed, remaining = packed[~equals_first], remaining[~equals_first]
        if not remaining.size:
            return
    groups = defaultdict[bytes, list[int]](list)
    for index, line in zip(remaining.tolist(), packed, strict=True):
        groups[line.tobytes()].append(index)
    yield from map(np.array, groups.values())


@dataclass(frozen=True)
class NumberShape:
    """The number of digits in each part of a number."""

    sign: bytes
    whole: int
    point: int
    fraction: int
    exponent_sign: bytes
    exponent: int

    @property
    def mantissa_width(self) -> int:
        """Characters of the mantissa, with its point."""
        return self.whole + self.point + self.fraction


@dataclass(frozen=True)
class NumberColumn:
    """Numbers of rows; ``present``: has one; ``valid``: valid or none."""

    values: Floats
    present: Mask
    valid: Mask


def read_numbers(
    block: Block, starts: Integers, first_numbers: Sequence[bytes | None], counts: Integers, has_thousands: bool = False
) -> NumberColumn:
    """Return the numbers at these positions of a block.

    ``starts``: where each number begins, ordered by layout. ``first_numbers``: the number in the first line of each
    layout, or None. ``counts``: the rows of each layout. ``has_thousands``: commas separate thousands; otherwise a
    number with a comma is invalid.
    """
    values = np.full(starts.size, np.nan)
    valid = np.ones(starts.size, dtype=bool)
    has_number = np.array([first is not None for first in first_numbers], dtype=bool)
    shapes = [number_shape(first) if first else first for first in first_numbers]
    shape_ids = {shape: shape_id for shape_id, shape in enumerate(dict.fromkeys(shapes))}
    shape_of_row = np.repeat([shape_ids[shape] for shape in shapes], counts)
    for shape, shape_id in shape_ids.items():
        rows = slice(None) if len(shape_ids) == 1 else shape_of_row == shape_id
        if isinstance(shape, NumberShape):
            values[rows] = _read_shape(block, starts[rows], shape)
        elif shape is not None and has_thousands and _THOUSANDS.fullmatch(shape):
            fraction = shape.partition(b".")[2]
            weights = np.zeros(len(shape))
            is_digit = np.array([character not in (ord(","), ord(".")) for character in shape])
            weights[is_digit] = _powers_of_ten(int(is_digit.sum()))
            numbers: Floats = weighted_digits(block, starts[rows], weights) / 10.0 ** len(fraction)
            values[rows] = numbers
        elif shape is not None:
            values[rows], valid[rows] = _read_word(shape)
    return NumberColumn(values, np.repeat(has_number, counts), valid)


def number_shape(text: bytes) -> NumberShape | bytes:
    """Return the shape of a number; of anything else, its text."""
    match = _NUMBER_PARTS.fullmatch(text)
    if not match or not match[2] + match[4]:
        return text
    sign, whole, point, fraction, exponent_sign, exponent = match.groups(b"")
    return NumberShape(sign, len(whole), len(point), len(fraction), exponent_sign, len(exponent))


def weighted_digits(block: Block, starts: Integers, weights: Floats) -> Floats:
    """Return the sum of digit × weight over characters from each start."""
    characters = byte_windows(np.frombuffer(block.data, np.uint8), starts, weights.size)
    total: Floats = (characters - np.uint8(ZERO)).astype(np.float64) @ weights
    return total


def _read_shape(block: Block, starts: Integers, shape: NumberShape) -> Floats:
    # Digits that do not fit a float, or an exponent that is too long to try.
    if shape.whole + shape.fraction > EXACT_DIGITS or shape.exponent > 2:
        return _read_one_by_one(block, starts, shape)
    mantissa_starts = starts + len(shape.sign)
    weights = np.insert(_powers_of_ten(shape.whole + shape.fraction), [shape.whole] * shape.point, 0.0)
    mantissa = weighted_digits(block, mantissa_starts, weights)
    sign = -1.0 if shape.sign == b"-" else 1.0
    if not shape.exponent:
        return np.asarray(sign * mantissa / 10.0**shape.fraction, dtype=np.float64)
    exponent_starts = mantissa_starts + shape.mantissa_width + 1 + len(shape.exponent_sign)
    exponents = weighted_digits(block, exponent_starts, _powers_of_ten(shape.exponent))
    power = exponents * (-1.0 if shape.exponent_sign == b"-" else 1.0) - shape.fraction
    scale = np.power(10.0, np.abs(power))
    values: Floats = np.asarray(sign * np.where(power < 0, mantissa / scale, mantissa * scale), dtype=np.float64)
    is_inexact = np.abs(power) > EXACT_POWER
    values[is_inexact] = _read_one_by_one(block, starts[is_inexact], shape)
    return values


def _powers_of_ten(count: int) -> Floats:
    return np.asarray(10.0 ** np.arange(count)[::-1], dtype=np.float64)


def _read_one_by_one(block: Block, starts: Integers, shape: NumberShape) -> Floats:
    exponent_width = 0
    if shape.exponent:
        exponent_width = 1 + len(shape.exponent_sign) + shape.exponent
    width = len(shape.sign) + shape.mantissa_width + exponent_width
    texts = byte_windows(np.frombuffer(block.data, np.uint8), starts, width).view(f"S{width}").ravel()
    return np.array(list(map(float, texts.tolist())))


def _read_word(text: bytes) -> tuple[float, bool]:
    """Return the value of inf, nan or ``1_0``, and whether it is valid."""
    try:
        if b"_" in text:
            return np.nan, False
        return float(text), True
    except ValueError:
        return np.nan, False
