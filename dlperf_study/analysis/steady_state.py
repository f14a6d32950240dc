"""A test whether the measured window is steady.

The window passes if the medians of its three thirds agree: they may differ by TOLERATED_DRIFT of the step, or by what
the spread of the steps explains (ALLOWED_ERRORS standard errors of a difference of two medians). The spread is taken
within each third, so that a drift does not explain itself, and both are medians, so that a single slow step decides
nothing. If the window fails, its beginning is cut off until the rest passes.
"""

import numpy as np

from dlperf_study.analysis.statistics import DEVIATIONS, median_error
from dlperf_study.arrays import Floats

TOLERATED_DRIFT = 0.03
ALLOWED_ERRORS = 3.5
#: A shorter window cannot be tested: a third must have three steps.
MINIMUM_STEPS = 9
#: The beginning is cut off in this many pieces of the window, up to half of it.
CUTS = 20


def settled_at(step_seconds: Floats) -> int | None:
    """Return the first step from which the window is steady: 0 if all of it is.

    None if less than half of it is steady, or it has fewer than 9 steps.
    """
    count = step_seconds.size
    for piece in range(CUTS // 2 + 1):
        cut = count * piece // CUTS
        if is_steady(step_seconds[cut:]):
            return cut
    return None


def is_steady(step_seconds: Floats) -> bool:
    """Return whether the medians of the three thirds of a window agree."""
    if step_seconds.size < MINIMUM_STEPS:
        return False
    size = step_seconds.size // 3
    thirds = step_seconds[-3 * size :].reshape(3, size)
    medians = np.median(thirds, axis=1)
    drift = np.ptp(medians)
    if drift <= TOLERATED_DRIFT * medians[1]:
        return True
    # The smallest deviation of each third is (nearly) that of the median from itself. With few steps it would make the
    # spread look much too small.
    deviations = np.sort(np.abs(thirds - medians[:, None]), axis=1)[:, 1:]
    error = median_error(DEVIATIONS * float(np.median(deviations)), size)
    return bool(drift <= ALLOWED_ERRORS * np.sqrt(2) * error)
