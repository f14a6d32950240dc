"""Columns of numbers, by what they hold: real numbers, whole ones, or which rows are meant."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def concatenated(parts: Iterable[Integers]) -> Integers:
    """Return some columns one after the other; of none, an empty one."""
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def any_of(masks: Iterable[Mask], size: int) -> Mask:
    """Say for each of ``size`` rows whether any of some masks means it; of none, none does."""
    some: Mask = np.logical_or.reduce([np.zeros(size, dtype=bool), *masks])
    return some


# What is usual around each value of a series.


def running_median(values: Floats, width: int) -> Floats:
    """Return the median of the ``width`` values around each; at both ends, that of the first and last ``width``.

    ``np.median`` gives the same numbers and takes four times as long, for it looks for NaN in every window.
    """
    width = min(width, values.size)
    before, other = width // 2, (width - 1) // 2
    around = np.partition(np.lib.stride_tricks.sliding_window_view(values, width), sorted({other, before}), axis=1)
    middle = around[:, before] if other == before else (around[:, other] + around[:, before]) / 2
    median: Floats = np.concatenate(
        (np.full(before, middle[0]), middle, np.full(values.size - before - middle.size, middle[-1]))
    )
    return median
