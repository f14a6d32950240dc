"""CPU seconds of a node, without those of the kernel's own threads, from ``/proc``.

What is left of it without the processes of a run is its background load: other programs, and what the hypervisor took.
In a container the kernel's threads are not visible, and nothing tells whose the seconds of the node are.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
#: The flag of a thread of the kernel, and where a process's flags and times are after its name (``man 5 proc``).
KERNEL_THREAD = 0x00200000
_PARENT, _FLAGS, _OWN_TIMES, _CHILDREN_TIMES = 1, 6, slice(11, 13), slice(13, 15)
#: Where the times of the first line of ``/proc/stat`` are: user, nice, system and steal.
_USED = (1, 2, 3, 8)


@dataclass(frozen=True)
class ProcessTimes:
    """The CPU seconds of a process and its ended children."""

    parent: int
    is_kernel_thread: bool
    seconds: float
    children_seconds: float


def used_seconds() -> float:
    """Return the busy seconds of all cores since boot.

    Raises OSError or ValueError where the kernel does not show them.
    """
    times = (PROC / "stat").read_text().split("\n", 1)[0].split()
    return sum(float(times[position]) for position in _USED) / os.sysconf("SC_CLK_TCK")


def process_times() -> dict[int, ProcessTimes]:
    """Return the times of all visible processes, by number."""
    times: dict[int, ProcessTimes] = {}
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            # A name may hold spaces and brackets.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            is_kernel_thread = bool(int(fields[_FLAGS]) & KERNEL_THREAD)
            ticks = os.sysconf("SC_CLK_TCK")
            seconds = sum(map(int, fields[_OWN_TIMES])) / ticks
            children_seconds = sum(map(int, fields[_CHILDREN_TIMES])) / ticks
            times[int(folder.name)] = ProcessTimes(int(fields[_PARENT]), is_kernel_thread, seconds, children_seconds)
    return times


def kernel_seconds(times: Mapping[int, ProcessTimes]) -> float | None:
    """Return the CPU seconds of kernel threads; None in containers."""
    threads = [each.seconds for each in times.values() if each.is_kernel_thread]
    if not threads:
        return None
    return sum(threads)
