"""The peaks of memory, on memory that really is filled."""

import subprocess
import sys

from dlperf_study.training.worker.machine_state import MemoryMeter

MIB = 2**20


class CountingAllocator:
    """A library that counts its own."""

    def __init__(self) -> None:
        self.restarts = 0

    def restart(self) -> None:
        self.restarts += 1

    def peaks(self) -> dict[str, int]:
        return {"allocated_bytes": self.restarts}


#: In a process of its own: libraries that others have loaded may keep what is freed.
FILLING = """
import numpy as np
from dlperf_study.training.worker.machine_state import MemoryMeter

def fill(mebibytes):
    np.ones(mebibytes * 2**20, np.int8)

fill(400)
meter = MemoryMeter(None)
print(meter.peaks()["process_bytes"])
fill(200)
print(meter.peaks()["process_bytes"])
"""


def test_the_peak_of_the_process_is_that_of_the_window_alone():
    """What was freed before the window is not in it, and what was freed within is."""
    done = subprocess.run([sys.executable, "-c", FILLING], capture_output=True, text=True, check=True)
    at_start, peak = map(int, done.stdout.split())
    assert 190 * MIB < peak - at_start < 300 * MIB


def test_the_counters_of_the_library_start_with_the_window():
    assert MemoryMeter(CountingAllocator).peaks()["allocated_bytes"] == 1
    assert set(MemoryMeter(None).peaks()) == {"process_bytes"}
