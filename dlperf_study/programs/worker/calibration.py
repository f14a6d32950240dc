"""A fixed loop of arithmetic before and after the measured window: how fast the machine was then."""

import time

#: About 3 ms of Python on a current core.
ITERATIONS = 60_000


def timed_calibration() -> float:
    """Run the calibration loop once and return its seconds."""
    start = time.perf_counter()
    total = 0
    for root in range(ITERATIONS):
        total += root * root
    return time.perf_counter() - start
