"""What a rank notes of its machine and of itself: background load, the speed of a fixed loop, memory and cores.

Peaks of memory are of the process, and of the tensors as far as the library counts them.
"""

import os
import re
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import cast

from dlperf_study.core.background_load import PROC, ProcessTimes, kernel_seconds, process_times, used_seconds
from dlperf_study.core.cpu_group import GROUP_VARIABLE, CpuGroup
from dlperf_study.records.lines import Calibration, CpuLimit, PeakMemory
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.libraries._base import Allocator

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
        """Return the background load; None where nobody looks."""
        if self._load:
            return self._load.cores()
        return None


class BackgroundLoad:
    """Cores that other processes or the hypervisor use on this node, from when this object is made.

    Neither the kernel's threads count, nor processes of the run: those with its mark, all below them, and those that
    started this one, as the node agent. One rank of each node looks, before the first and after the last window.
    """

    def __init__(self) -> None:
        self._start, self._seconds = time.monotonic(), _seconds_of_others()

    def cores(self) -> float | None:
        """Return the mean number of cores since then, or None."""
        seconds, duration = _seconds_of_others(), time.monotonic() - self._start
        if seconds is None or self._seconds is None:
            return None
        return max(0.0, seconds - self._seconds) / duration


def _seconds_of_others() -> float | None:
    """Return the CPU seconds of other processes, or None."""
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
    """Return this process and all others of the run."""
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
    """Return the ancestors of this process, its parent first."""
    ancestors, parent = list[int](), os.getppid()
    while parent in times:
        ancestors.append(parent)
        parent = times[parent].parent
    return ancestors


MIB = 2**20
_PROCESS = Path("/proc/self")
#: Written there, it makes the peak of the resident set start again from what it is now.
_RESTART_PEAK = "5"
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def limit_memory(mebibytes: int) -> None:
    """Let the kernel refuse more memory; 0: nothing is refused."""
    # It counts what the process may write to and shares with none, as tensors, whether or not it has written there yet.
    # So an allocation is refused when it is requested, as on a GPU, and the library raises its own exception.
    if mebibytes:
        limit = mebibytes * MIB
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


class MemoryMeter:
    """Counts peaks from its making on; the allocator, if the framework has one, is asked for its own."""

    def __init__(self, new_allocator: Callable[[], Allocator] | None) -> None:
        self._allocator = new_allocator() if new_allocator else None
        if self._allocator:
            self._allocator.restart()
        self._counts_process = _restart_process_peak()

    def peaks(self) -> PeakMemory:
        """Return known peaks in bytes by name."""
        peaks = cast(PeakMemory, self._allocator.peaks() if self._allocator else {})
        if self._counts_process and (process_bytes := _peak_resident_bytes()):
            peaks["process_bytes"] = process_bytes
        return peaks


def _restart_process_peak() -> bool:
    """Restart the kernel's peak; return whether it does."""
    with suppress(OSError):
        (_PROCESS / "clear_refs").write_text(_RESTART_PEAK)
        return True
    return False


def _peak_resident_bytes() -> int:
    """Return the peak of the resident set, or 0."""
    with suppress(OSError):
        if peak := _PEAK.search((_PROCESS / "status").read_text()):
            return int(peak[1]) * 1024
    return 0


class CpuMeter:
    """Counts from its making on."""

    def __init__(self, group: CpuGroup) -> None:
        self._group = group
        self._usage, self._cpu_seconds = group.usage(), time.process_time()

    def counts(self) -> CpuLimit:
        """Return limit, counters and CPU seconds of this process."""
        used = {"cores": self._group.cores(), "cpu_seconds": time.process_time() - self._cpu_seconds}
        return cast(CpuLimit, used | asdict(self._group.usage().since(self._usage)))
