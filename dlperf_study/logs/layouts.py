"""Lines that differ in their digits only have one layout: what a pattern finds in one of them, it finds in all.

So a pattern is tried on one line per layout, and the numbers are then taken from all of them at once, as columns of
digits. This holds as long as no pattern asks for particular digits; a test sees to that.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dlperf_study.arrays import Integers, Mask
from dlperf_study.logs.blocks import Block

#: Longer lines are looked at one by one.
LONGEST = 512
ZERO = 48
_WORD = 8
#: How many layouts of one length are found by comparing all lines with the first.
ROUNDS = 8

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Layout:
    """Lines of a block, counted from 0, that differ in their digits only; ``text`` is the first of them."""

    lines: Integers
    text: bytes


def layouts(block: Block, lines: Integers) -> list[Layout]:
    """Return some lines of a block by their layout."""
    lengths = (block.ends - block.starts)[lines]
    short = (lengths > 0) & (lengths <= LONGEST)
    found = [Layout(lines[index : index + 1], block.line(lines[index])) for index in np.flatnonzero(lengths > LONGEST)]
    if short.any():
        plain = _without_digits(block.data)
        lines, lengths = lines[short], lengths[short]
        for group in same(lengths.astype(np.uint16)):
            members = lines[group]
            alike = _alike(plain, block.starts[members], int(lengths[group[0]]))
            found += [Layout(members[one], block.line(members[one[0]])) for one in alike]
    return found


def windows(data: Bytes, starts: Integers, width: int) -> Bytes:
    """Return the ``width`` bytes from each start on; shape (starts, width)."""
    every = np.ndarray((data.size - width + 1,), f"V{width}", data, 0, (1,))
    return every[starts].view(np.uint8).reshape(starts.size, width)


def same(values: NDArray[np.uint16]) -> list[Integers]:
    """Return the indices of equal values, group by group."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def _without_digits(data: bytes) -> Bytes:
    """Return the bytes with every digit made 0, and room behind them for a window."""
    plain = np.zeros(len(data) + LONGEST, dtype=np.uint8)
    text = np.subtract(np.frombuffer(data, np.uint8), ZERO, out=plain[: len(data)])
    text *= text > 9
    return plain


def _alike(plain: Bytes, starts: Integers, length: int) -> Iterator[Integers]:
    """Yield lines of one length in groups of equal bytes, digits aside."""
    characters = windows(plain, starts, -(-length // _WORD) * _WORD)
    characters[:, length:] = 0
    words, left = characters.view(np.uint64), np.arange(starts.size)
    for _ in range(ROUNDS):
        like = _like_first(words)
        yield left[like]
        words, left = words[~like], left[~like]
        if not left.size:
            return
    groups = defaultdict[bytes, list[int]](list)
    for index, line in zip(left.tolist(), words, strict=True):
        groups[line.tobytes()].append(index)
    yield from map(np.array, groups.values())


def _like_first(words: NDArray[np.uint64]) -> Mask:
    """Say which rows are as the first; column by column, since numpy is slow where rows are short."""
    like = np.ones(len(words), dtype=bool)
    for column in words.T:
        like &= column == column[0]
    return like
