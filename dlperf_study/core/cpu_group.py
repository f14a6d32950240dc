"""A share of the cores for some processes: a control group of the kernel, in its first or second version.

A group is made, joined and left by its processes only; who ends a run removes it. Its name has the mark of the run, and
the id of the process that made it, so that a later run can tell whether it is still in use. Standard library only:
every training process imports this.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dlperf_study.core.errors import RunError

#: In the environment of training processes: the beginning of the names of their groups.
GROUP_VARIABLE = "DLPERF_STUDY_CPU_GROUP"
PREFIX = "dlperf_study."
#: Where systems mount the tree of groups, and in the first version of the kernel's interface that of the CPU.
TREE, CPU_TREE = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu")
#: The kernel gives out CPU time in periods: a group that has used up its part waits for the next.
PERIOD_MICROSECONDS = 100_000
#: A process that was killed may take so long to leave its group.
REMOVAL_SECONDS, POLL_SECONDS = 5.0, 0.01


@dataclass(frozen=True)
class CpuUsage:
    """Periods, throttled periods, and throttled seconds of a group."""

    periods: int
    throttled_periods: int
    throttled_seconds: float

    def since(self, earlier: "CpuUsage") -> "CpuUsage":
        """Return what was added."""
        return CpuUsage(
            self.periods - earlier.periods,
            self.throttled_periods - earlier.throttled_periods,
            self.throttled_seconds - earlier.throttled_seconds,
        )


class CpuGroup:
    """A control group's folder; ``is_second_version``: the kernel interface."""

    def __init__(self, folder: Path, is_second_version: bool) -> None:
        self._folder = folder
        self._is_second_version = is_second_version

    def limit(self, cores: float) -> None:
        """Limit the group's cores; raises OSError if refused."""
        quota = round(cores * PERIOD_MICROSECONDS)
        if self._is_second_version:
            (self._folder / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
        else:
            (self._folder / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota))

    def cores(self) -> float:
        """Return the group's core limit; 0: unknown."""
        with suppress(OSError, ValueError):
            if self._is_second_version:
                quota, period = (self._folder / "cpu.max").read_text().split()
            else:
                quota = (self._folder / "cpu.cfs_quota_us").read_text()
                period = (self._folder / "cpu.cfs_period_us").read_text()
            return max(0.0, int(quota) / int(period))
        return 0.0

    def join(self, processes: Iterable[int]) -> None:
        """Move processes with all threads into the group."""
        for process in processes:
            with suppress(ProcessLookupError):
                (self._folder / "cgroup.procs").write_text(str(process))

    def usage(self) -> CpuUsage:
        """Return what the kernel has counted since the group was made."""
        counts: dict[str, int] = {}
        for line in (self._folder / "cpu.stat").read_text().splitlines():
            name, count = line.split()
            counts[name] = int(count)
        seconds = counts["throttled_usec"] / 1e6 if self._is_second_version else counts["throttled_time"] / 1e9
        return CpuUsage(counts["nr_periods"], counts["nr_throttled"], seconds)

    def remove(self) -> None:
        """Remove the group after its processes; a busy one stays."""
        deadline = time.monotonic() + REMOVAL_SECONDS
        while self._folder.exists() and time.monotonic() < deadline:
            with suppress(OSError):
                self._folder.rmdir()
                return
            time.sleep(POLL_SECONDS)


def is_second_version() -> bool:
    """Return whether the unified hierarchy controls the CPU."""
    with suppress(OSError):
        return "cpu" in (TREE / "cgroup.controllers").read_text().split()
    return False


def container_group() -> CpuGroup:
    """Return the visible root group: a container's own."""
    return CpuGroup(_tree(), is_second_version())


def new_group(name: str, cores: float) -> CpuGroup:
    """Make a group with so many cores; raises OSError if impossible."""
    if is_second_version() and "cpu" not in (TREE / "cgroup.subtree_control").read_text().split():
        (TREE / "cgroup.subtree_control").write_text("+cpu")
    folder = _tree() / f"{PREFIX}{name}.{os.getpid()}"
    folder.mkdir()
    group = CpuGroup(folder, is_second_version())
    try:
        group.limit(cores)
    except OSError:
        folder.rmdir()
        raise
    return group


def obstacle(cores: float) -> str:
    """Return why no such group is possible; empty if it is."""
    try:
        new_group("trial", cores).remove()
    except OSError as error:
        return f"cpu_limit {cores:g}: {_reason(error)}"
    return ""


def limited_group(cores: float) -> CpuGroup:
    """Limit this process and its children; return their group.

    A container that has this limit already is left as it is. Raises RunError where no group can be made.
    """
    container = container_group()
    if abs(container.cores() - cores) < 1 / PERIOD_MICROSECONDS:
        return container
    try:
        group = new_group(os.environ.get(GROUP_VARIABLE, "by-hand"), cores)
        group.join([os.getpid(), *_descendants(os.getpid())])
    except OSError as error:
        raise RunError(f"cpu_limit {cores:g}: {_reason(error)}") from error
    return group


def remove_groups(name: str) -> None:
    """Remove the groups of a run, whose processes have ended."""
    for group in _groups():
        if group.name.startswith(f"{PREFIX}{name}."):
            CpuGroup(group, is_second_version()).remove()


def remove_abandoned_groups() -> None:
    """Remove the groups that dead processes have made."""
    for group in _groups():
        process = group.name.rpartition(".")[2]
        if process.isdecimal() and not Path(f"/proc/{process}").exists():
            CpuGroup(group, is_second_version()).remove()


def _descendants(process: int) -> Iterator[int]:
    """Yield the direct and indirect child processes of a process."""
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from _descendants(child)


def _groups() -> Iterator[Path]:
    with suppress(OSError):
        yield from _tree().glob(f"{PREFIX}*")


def _tree() -> Path:
    return TREE if is_second_version() else CPU_TREE


def _reason(error: OSError) -> str:
    cause = f"{error.filename or _tree()}: {error.strerror}"
    remedy = "run as root on a machine with writable control groups, or with resources in Kubernetes"
    return f"no control group can limit the cores ({cause}); {remedy}"
