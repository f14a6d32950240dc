"""What this machine has: the values behind ``auto`` in a cluster file. Standard library only."""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from dlperf_study.study.job import VISIBLE_DEVICES

# What other programs of this machine say. Standard library only.


COMMAND_SECONDS = 30


def command_output(*argv: str) -> str:
    """Return what a command prints, or nothing when it can't be run, fails, or takes too long."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# The NVIDIA GPUs that a process may use, counted as CUDA counts them. Standard library only.


_GPU_LINE = re.compile(r"GPU \d+: .*\(UUID: (?P<uuid>GPU-[^)]+)\)")
_MIG_LINE = re.compile(r"\s+MIG (?P<profile>\S+)\s+Device\s+\d+: \(UUID: (?P<uuid>MIG-[^)]+)\)")


@dataclass(frozen=True)
class Gpu:
    """One device, as nvidia-smi describes it; a MIG device, a part of a GPU, has no index."""

    index: str
    uuid: str
    name: str
    driver: str
    memory: str


def usable_gpus(allowed: str | None, command: str = "nvidia-smi") -> list[Gpu]:
    """Return the GPUs that a process with this list may use; None stands for no list, and so for all."""
    found = _all_gpus(command)
    if allowed is None:
        return found
    parts = list(_mig_devices(found, command)) if "MIG-" in allowed else []
    meant = (_meant(word, [*found, *parts]) for word in devices_in(allowed))
    return [gpu for gpu in takewhile(bool, meant) if gpu]


def devices_in(allowed: str) -> list[str]:
    """Return the devices of a list as CUDA reads it: up to the first word that stands for none."""
    return list(takewhile(_is_device, (word.strip() for word in allowed.split(","))))


def _all_gpus(command: str) -> list[Gpu]:
    query = "--query-gpu=index,uuid,name,driver_version,memory.total"
    table = command_output(command, query, "--format=csv,noheader")
    rows = [line.split(", ") for line in table.splitlines()]
    return [Gpu(*row) for row in rows if len(row) == 5]


def _mig_devices(gpus: list[Gpu], command: str) -> Iterator[Gpu]:
    """Yield the MIG devices of these GPUs; in the list each stands below its GPU."""
    parent = None
    for line in command_output(command, "-L").splitlines():
        if found := _GPU_LINE.match(line):
            parent = _meant(found["uuid"], gpus)
        if parent and (part := _MIG_LINE.match(line)):
            yield Gpu("", part["uuid"], f"{parent.name} MIG {part['profile']}", parent.driver, "")


def _is_device(word: str) -> bool:
    return word.isdecimal() or word.startswith(("GPU-", "MIG-"))


def _meant(word: str, gpus: list[Gpu]) -> Gpu | None:
    return next((gpu for gpu in gpus if word == gpu.index or gpu.uuid.startswith(word)), None)


CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
CPU_INFO = Path("/proc/cpuinfo")


def usable_cpus(quota: Path = CPU_QUOTA) -> int:
    """Return how many logical CPUs this process may keep busy: its affinity, and its container's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit, period = quota.read_text().split() if quota.is_file() else ("max", "")
    return allowed if limit == "max" else max(1, min(allowed, int(limit) // int(period)))


def cpu_name(information: Path = CPU_INFO) -> str:
    """Return the processor's name as its maker gives it."""
    lines = information.read_text().splitlines() if information.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def gpu_names(command: str = "nvidia-smi") -> list[str]:
    """Return the names of the NVIDIA GPUs this process may use; none when there is no driver."""
    return [gpu.name for gpu in usable_gpus(os.environ.get(VISIBLE_DEVICES), command)]
