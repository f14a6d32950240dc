"""Is the measured window steady? Tested, not assumed.

The window passes when the medians of its three thirds agree: they may differ by TOLERATED_DRIFT of the
step, or by what the spread of the steps explains (ALLOWED_ERRORS standard errors of a difference of two
medians). The spread is taken within each third, so that a drift doesn't excuse itself, and both are
medians, so that a single slow step decides nothing. Where the window fails, its beginning is cut off
until the rest passes.
"""

import numpy as np

from dlperf_study.analysis.statistics import DEVIATIONS, median_error
from dlperf_study.logs.arrays import Real

TOLERATED_DRIFT = 0.03
ALLOWED_ERRORS = 3.5
#: Shorter windows say nothing: a third must hold three steps.
MINIMUM_STEPS = 9
#: The beginning is cut off in steps of this share of the window, and at most half of it.
CUTS = 20


def settled_at(step_seconds: Real) -> int | None:
    """Return the first step from which the window is steady: 0 if all of it is.

    None when less than half of it is steady, or it has fewer than 9 steps.
    """
    count = step_seconds.size
    cuts = sorted({count * cut // CUTS for cut in range(CUTS // 2 + 1)})
    return next((cut for cut in cuts if is_steady(step_seconds[cut:])), None)


def is_steady(step_seconds: Real) -> bool:
    """Say whether the medians of the three thirds of a window agree."""
    if step_seconds.size < MINIMUM_STEPS:
        return False
    size = step_seconds.size // 3
    thirds = step_seconds[-3 * size :].reshape(3, size)
    medians = np.median(thirds, axis=1)
    drift = np.ptp(medians)
    return bool(drift <= TOLERATED_DRIFT * medians[1] or drift <= _explained(thirds, medians))


def _explained(thirds: Real, medians: Real) -> float:
    """Return the largest difference of medians that the spread within the thirds explains.

    Their spread is told as that of normal values is, by the median deviation.
    The smallest deviation of each third is left out: it is (nearly) that of the median from itself, and
    among few steps it would make the spread look much too small.
    """
    deviations = np.sort(np.abs(thirds - medians[:, None]), axis=1)[:, 1:]
    error = median_error(DEVIATIONS * float(np.median(deviations)), thirds.shape[1])
    return float(ALLOWED_ERRORS * np.sqrt(2) * error)
