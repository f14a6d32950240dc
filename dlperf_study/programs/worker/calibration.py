"""A fixed loop of arithmetic before and after the measured window: how fast the machine was then."""

import time

from dlperf_study.evidence.lines import Calibration

#: About 3 ms of Python on a current core.
ITERATIONS = 60_000


def timed_calibration() -> float:
    """Run the calibration loop once and return its seconds."""
    start = time.perf_counter()
    total = 0
    for root in range(ITERATIONS):
        total += root * root
    return time.perf_counter() - start


def calibration(seconds_before: float, seconds_after: float) -> Calibration:
    """Return what the log of a rank says of the loops before and after the training window."""
    return {"iterations": ITERATIONS, "seconds": [seconds_before, seconds_after]}
