"""What this machine has: the values behind ``auto`` in a cluster file. Standard library only."""

import os
import platform
from pathlib import Path

from dlperf_study.study.gpus import VISIBLE, usable_gpus

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
    return [gpu.name for gpu in usable_gpus(os.environ.get(VISIBLE), command)]
