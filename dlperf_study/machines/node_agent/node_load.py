"""The load of a node by other processes: the wait until it is idle before a run, and the busy cores during it.

How many processes the kernel kills during a run because memory is full is counted here too.
"""

import os
import re
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from dlperf_study.core.background_load import kernel_seconds, process_times, used_seconds
from dlperf_study.core.cpu_group import TREE
from dlperf_study.machines.supervision.processes import end_orphans

SAMPLE_SECONDS = 0.1
#: A wait that lasts longer is reported, with the processes that were busy meanwhile.
UNREPORTED_SECONDS = 1.0
#: How many processes are named, and how many cores one must keep busy to be named.
MOST_NAMED, NAMED_CORES = 3, 0.1
_GROUPS_OF_THIS_PROCESS = Path("/proc/self/cgroup")
#: The files in which the kernel counts those that it killed because memory was full: of a group, by version 2 and 1 of
#: control groups, and of the node.
_COUNTERS_OF_GROUP, _COUNTER_OF_NODE = ("memory.events", "memory.oom_control"), Path("/proc/vmstat")
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Load:
    """The load of a node before a run."""

    waited_seconds: float
    busy_cores_before: float
    orphans_ended: tuple[str, ...]


def wait_until_idle(
    max_busy_cores: float, wait_seconds: float, check: Callable[[], None], report: Callable[[str], None]
) -> Load:
    """End survivors, and wait until this node is idle."""
    # A wait that is not over at once is reported, once, with what keeps the node busy. A node that stays busy is
    # measured all the same; the load is recorded and the report says so.
    orphans = end_orphans()
    start = time.monotonic()
    seconds_before = _cpu_seconds_of_processes()
    is_reported = False
    busy = cores_busy(SAMPLE_SECONDS)
    while busy > max_busy_cores and (waited := time.monotonic() - start) < wait_seconds:
        check()
        if waited > UNREPORTED_SECONDS and not is_reported:
            report(busy_processes(seconds_before, waited))
            is_reported = True
        busy = cores_busy(SAMPLE_SECONDS)
    return Load(time.monotonic() - start, busy, orphans)


def busy_processes(seconds_before: Mapping[psutil.Process, float], elapsed_seconds: float) -> str:
    """Return the busiest processes, with their cores.

    ``seconds_before``: the CPU seconds of each process ``elapsed_seconds`` ago.
    """
    cores: dict[str, float] = {}
    for process, seconds in _cpu_seconds_of_processes().items():
        busy = (seconds - seconds_before.get(process, 0.0)) / elapsed_seconds
        if busy >= NAMED_CORES and process.pid != os.getpid():
            with suppress(psutil.Error):
                cores[f"{process.name()} (process {process.pid}, {busy:.1f} cores)"] = busy
    busiest = sorted(cores, key=cores.__getitem__, reverse=True)
    return ", ".join(busiest[:MOST_NAMED]) or "no visible process"


def cores_busy(seconds: float) -> float:
    """Return how many cores are busy, measured for so long."""
    return psutil.cpu_percent(interval=seconds) / 100 * (psutil.cpu_count() or 1)


class LoadMeter:
    """Measures the cores that other processes use."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._seconds = _seconds_of_others()
        self._kills = out_of_memory_kills()

    def busy_cores(self) -> float | None:
        """Return the mean number of busy cores, or None."""
        seconds = _seconds_of_others()
        if seconds is None or self._seconds is None:
            return None
        return max(0.0, seconds - self._seconds) / max(time.monotonic() - self._start, 1e-9)

    def out_of_memory_kills(self) -> int:
        """Return how many processes the kernel killed for memory."""
        return out_of_memory_kills() - self._kills


def _seconds_of_others() -> float | None:
    """Return the CPU seconds of other processes so far."""
    try:
        used = used_seconds()
    except (OSError, ValueError):
        return None
    kernel = kernel_seconds(process_times())
    if kernel is None:
        return None
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return used - kernel - sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _cpu_seconds_of_processes() -> dict[psutil.Process, float]:
    """Return the CPU seconds that each process has used so far."""
    used: dict[psutil.Process, float] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            times = process.cpu_times()
            used[process] = times.user + times.system
    return used


def out_of_memory_kills() -> int:
    """Return how many processes the kernel killed for memory."""
    # The outermost group of version 2 counts none.
    group = own_group("memory")
    counters = [group / name for name in _COUNTERS_OF_GROUP] if group else []
    for counter in (*counters, _COUNTER_OF_NODE):
        with suppress(OSError):
            if kills := _KILLS.search(counter.read_text()):
                return int(kills[1])
    return 0


def own_group(controller: str) -> Path | None:
    """Return the folder of this process's control group, or None."""
    folders: list[Path] = []
    with suppress(OSError):
        for line in _GROUPS_OF_THIS_PROCESS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                # A container may see its own group as the whole, under a name that is only valid outside.
                folders = [TREE / controller / path.lstrip("/"), TREE / controller]
                break
            if not controllers:
                folders = [TREE / path.lstrip("/"), TREE]
    return next((folder for folder in folders if folder.is_dir()), None)
