"""Types of numpy arrays, and what several rooms compute with them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: How many windows a running median copies at once.
_WINDOWS_AT_ONCE = 1 << 14


def concatenated(parts: Iterable[Integers]) -> Integers:
    """Return arrays one after the other; of none, an empty one."""
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def unite_masks(masks: Iterable[Mask], size: int) -> Mask:
    """Return per row whether any mask is true; default false."""
    union: Mask = np.logical_or.reduce([np.zeros(size, dtype=bool), *masks])
    return union


def constant(value: Any, size: int) -> NDArray[Any]:
    """Return a read-only array of one value, without memory."""
    return np.broadcast_to(np.asarray(value), size)


def is_constant(column: NDArray[Any]) -> bool:
    """Return whether ``constant`` made an array."""
    return column.size > 1 and column.strides == (0,)


def elements(column: NDArray[Any], rows: Mask | Integers) -> NDArray[Any]:
    """Return some elements of a column, without a needless copy."""
    is_mask = rows.dtype == np.bool_
    if is_mask and rows.all():
        return column
    if is_constant(column):
        return constant(column[0], int(np.count_nonzero(rows)) if is_mask else rows.size)
    return column[rows]


def median(values: Floats | Integers) -> float:
    """Return the median of values without NaN, faster than ``np.median``."""
    middle = values.size // 2
    if values.size % 2:
        return float(np.partition(values, middle)[middle])
    upper = np.partition(values, (middle - 1, middle))
    return float((upper[middle - 1] + upper[middle]) / 2)


def running_median(values: Floats, width: int) -> Floats:
    """Return the median of the ``width`` values around each.

    ``np.median`` gives the same numbers and takes four times as long, because it looks for NaN in every window.
    """
    width = min(width, values.size)
    upper, lower = width // 2, (width - 1) // 2
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    median = np.empty(values.size)
    middle = median[upper : upper + len(windows)]
    # In pieces, because a partition copies every window.
    for start in range(0, len(windows), _WINDOWS_AT_ONCE):
        piece = slice(start, start + _WINDOWS_AT_ONCE)
        partitioned = np.partition(windows[piece], sorted({lower, upper}), axis=1)
        middle[piece] = (partitioned[:, lower] + partitioned[:, upper]) / 2
    median[:upper], median[upper + len(windows) :] = middle[0], middle[-1]
    return median
