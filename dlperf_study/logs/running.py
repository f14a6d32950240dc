"""What is usual around each value of a series."""

import numpy as np

from dlperf_study.logs.records import Real


def running_median(values: Real, width: int) -> Real:
    """Return the median of the ``width`` values around each; at both ends, that of the first and last ``width``."""
    width = min(width, values.size)
    middle = np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    before = width // 2
    median: Real = np.concatenate(
        (np.full(before, middle[0]), middle, np.full(values.size - before - middle.size, middle[-1]))
    )
    return median
