"""What this machine has: the values behind ``auto`` in a cluster file. Standard library only."""

import os
import platform
import subprocess
from pathlib import Path

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
    """Return the names of the NVIDIA GPUs this process may use; none when there is no driver.

    ``CUDA_VISIBLE_DEVICES`` counts as CUDA counts it: indices or the beginnings of UUIDs, up to the first invalid one.
    """
    query = [command, "--query-gpu=index,uuid,name", "--format=csv,noheader"]
    try:
        printed = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return []
    gpus = [line.split(", ", 2) for line in printed.splitlines()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [name for _, _, name in gpus] if visible is None else _visible(gpus, visible)


def _visible(gpus: list[list[str]], visible: str) -> list[str]:
    names = []
    for wanted in filter(None, visible.split(",")):
        found = [name for index, uuid, name in gpus if wanted == index or uuid.startswith(wanted)]
        if not found:
            break
        names.append(found[0])
    return names
