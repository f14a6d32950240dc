"""Control groups, by which the kernel limits what processes use together: of its versions 1 and 2."""

import re
from contextlib import suppress
from pathlib import Path

from dlperf_study.cluster.cpu_group import TREE

_GROUPS_OF_THIS_PROCESS = Path("/proc/self/cgroup")
#: The files in which a group counts its processes that were killed because memory was full, of version 2 and 1.
_KILL_COUNTERS = ("memory.events", "memory.oom_control")
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def own_group(controller: str) -> Path | None:
    """Return the folder of the group of this process that has a controller, as ``memory``; None if unknown."""
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


def out_of_memory_kills() -> int | None:
    """Return how many processes of the group of this process the kernel has killed because memory was full.

    None where the group counts none, as the outermost of version 2.
    """
    group = own_group("memory")
    if not group:
        return None
    for name in _KILL_COUNTERS:
        with suppress(OSError):
            if kills := _KILLS.search((group / name).read_text()):
                return int(kills[1])
    return None
