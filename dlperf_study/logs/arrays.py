"""Columns of numbers, by what they hold: real numbers, whole ones, or which rows are meant."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]


def end_to_end(parts: Iterable[Whole]) -> Whole:
    """Return some columns one after the other; of none, an empty one."""
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def any_of(masks: Iterable[Mask], size: int) -> Mask:
    """Say for each of ``size`` rows whether any of some masks means it; of none, none does."""
    some: Mask = np.logical_or.reduce([np.zeros(size, dtype=bool), *masks])
    return some
