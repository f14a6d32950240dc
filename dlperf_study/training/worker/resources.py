"""The memory and the cores of a training process: their limits, and what a window used of them.

Peaks of memory are of the process, and of the tensors as far as the library counts them.
"""

import re
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import cast

from dlperf_study.core.cpu_group import CpuGroup
from dlperf_study.records.lines import CpuLimit, PeakMemory
from dlperf_study.training.libraries._base import Allocator

MIB = 2**20
_PROCESS = Path("/proc/self")
#: Written there, it makes the peak of the resident set start again from what it is now.
_RESTART_PEAK = "5"
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def limit_memory(mebibytes: int) -> None:
    """Let the kernel refuse this process more memory than that; 0: nothing is refused.

    It counts what the process may write to and shares with none, as tensors, whether or not it has written there yet.
    So an allocation is refused when it is requested, as on a GPU, and the library raises its own exception.
    """
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
        """Return bytes by name, without what can't be known: ``process_bytes`` where the kernel restarts no peak."""
        peaks = cast(PeakMemory, self._allocator.peaks() if self._allocator else {})
        if self._counts_process and (process_bytes := _peak_resident_bytes()):
            peaks["process_bytes"] = process_bytes
        return peaks


def _restart_process_peak() -> bool:
    """Let the kernel count the peak from now on; return whether it does. Without that, it has the start in it."""
    with suppress(OSError):
        (_PROCESS / "clear_refs").write_text(_RESTART_PEAK)
        return True
    return False


def _peak_resident_bytes() -> int:
    """Return the peak of the resident set in bytes; 0 where the kernel does not say."""
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
        """Return the limit in cores as the kernel has it, what it counted, and the CPU seconds of this process."""
        used = {"cores": self._group.cores(), "cpu_seconds": time.process_time() - self._cpu_seconds}
        return cast(CpuLimit, used | asdict(self._group.usage().since(self._usage)))
