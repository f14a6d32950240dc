"""What a rank notes of its machine: the background load during its windows, and how fast a fixed loop is."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress

from dlperf_study.core.background_load import PROC, ProcessTimes, kernel_seconds, process_times, used_seconds
from dlperf_study.core.cpu_group import GROUP_VARIABLE
from dlperf_study.records.lines import Calibration
from dlperf_study.study.configuration import Configuration

#: Of the calibration loop: about 3 ms of Python on a current core.
ITERATIONS = 60_000


class MachineState:
    """The state of the machine from before the first window of a rank to after its last one."""

    def __init__(self, configuration: Configuration, rank: int) -> None:
        is_first_of_node = rank % configuration.devices_per_node == 0
        # Without the mark of the run its other processes would count as background load.
        self._load = BackgroundLoad() if is_first_of_node and GROUP_VARIABLE in os.environ else None
        self._seconds: list[float] = []

    def calibrate(self) -> None:
        """Time the calibration loop: a fixed number of multiplications."""
        start = time.perf_counter()
        total = 0
        for root in range(ITERATIONS):
            total += root * root
        self._seconds.append(time.perf_counter() - start)

    @property
    def calibration(self) -> Calibration:
        """The seconds of the loops so far."""
        return {"iterations": ITERATIONS, "seconds": self._seconds}

    def background_cores(self) -> float | None:
        """Return the background load so far; None on all but one rank of a node, and where it can't be seen."""
        return self._load.cores() if self._load else None


class BackgroundLoad:
    """Cores that other processes or the hypervisor use on this node, from when this object is made.

    Neither the kernel's threads count, nor processes of the run: those with its mark, all below them, and those that
    started this one, as the node agent. One rank of each node looks, before the first and after the last window.
    """

    def __init__(self) -> None:
        self._start, self._seconds = time.monotonic(), _seconds_of_others()

    def cores(self) -> float | None:
        """Return the mean number of cores since then; None where that can't be seen."""
        seconds, duration = _seconds_of_others(), time.monotonic() - self._start
        if seconds is None or self._seconds is None:
            return None
        return max(0.0, seconds - self._seconds) / duration


def _seconds_of_others() -> float | None:
    """Return the CPU seconds of this node so far without those of the kernel and of this run; None if unknown."""
    try:
        used = used_seconds()
    except (OSError, ValueError):
        return None
    times = process_times()
    kernel, run, ancestors = kernel_seconds(times), _run_processes(times), _ancestors(times)
    if kernel is None:
        return None
    run_seconds = sum(times[pid].seconds + times[pid].children_seconds for pid in run)
    outer_ancestors = [pid for pid in ancestors if pid not in run]
    run_seconds += sum(times[pid].seconds for pid in outer_ancestors)
    # The first of them is the node agent: a process of the run that has ended is among its children.
    run_seconds += times[outer_ancestors[0]].children_seconds if outer_ancestors else 0.0
    return used - kernel - run_seconds


def _run_processes(times: Mapping[int, ProcessTimes]) -> set[int]:
    """Return this process, those with the mark of the run, and all below them."""
    mark = f"{GROUP_VARIABLE}={os.environ.get(GROUP_VARIABLE, '')}".encode()
    run = {os.getpid()} & times.keys()
    for pid in times:
        with suppress(OSError):
            if mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                run.add(pid)
    for pid in times:
        chain = [pid]
        while chain[-1] in times and chain[-1] not in run:
            chain.append(times[chain[-1]].parent)
        if chain[-1] in run:
            run.update(chain)
    return run


def _ancestors(times: Mapping[int, ProcessTimes]) -> list[int]:
    """Return the processes that started this one, from its parent up to the first of the node."""
    ancestors, parent = list[int](), os.getppid()
    while parent in times:
        ancestors.append(parent)
        parent = times[parent].parent
    return ancestors
