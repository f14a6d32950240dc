"""What is usual around each value of a series."""

import numpy as np

from dlperf_study.logs.arrays import Real


def running_median(values: Real, width: int) -> Real:
    """Return the median of the ``width`` values around each; at both ends, that of the first and last ``width``.

    ``np.median`` gives the same numbers and takes four times as long, for it looks for NaN in every window.
    """
    width = min(width, values.size)
    before, other = width // 2, (width - 1) // 2
    around = np.partition(np.lib.stride_tricks.sliding_window_view(values, width), sorted({other, before}), axis=1)
    middle = around[:, before] if other == before else (around[:, other] + around[:, before]) / 2
    median: Real = np.concatenate(
        (np.full(before, middle[0]), middle, np.full(values.size - before - middle.size, middle[-1]))
    )
    return median
