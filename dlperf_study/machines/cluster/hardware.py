"""What this machine has, the values of ``auto`` in a cluster file, and what connects its devices.

Standard library only.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

COMMAND_SECONDS = 30
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
CPU_INFO = Path("/proc/cpuinfo")
_GPU_LINE = re.compile(r"GPU \d+: .*\(UUID: (?P<uuid>GPU-[^)]+)\)")
_TOPOLOGY_ROW = re.compile(r"GPU(?P<index>\d+)")
#: nvidia-smi underlines the first line of its table.
_ESCAPE = re.compile(r"\x1b\[\d*m")
_MIG_LINE = re.compile(r"\s+MIG (?P<profile>\S+)\s+Device\s+\d+: \(UUID: (?P<uuid>MIG-[^)]+)\)")


def usable_cpus(quota: Path = CPU_QUOTA) -> int:
    """Return how many logical CPUs this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit, period = quota.read_text().split() if quota.is_file() else ("max", "")
    if limit == "max":
        return allowed
    return max(1, min(allowed, int(limit) // int(period)))


def cpu_name(information: Path = CPU_INFO) -> str:
    """Return the name of the processor as its maker gives it."""
    lines = information.read_text().splitlines() if information.is_file() else []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True)
class Gpu:
    """One device of nvidia-smi; a MIG device has no index."""

    index: str
    uuid: str
    name: str
    driver: str
    memory: str


def usable_gpus(allowed: str | None, command: str = "nvidia-smi") -> list[Gpu]:
    """Return the NVIDIA GPUs that a process may use.

    ``allowed`` is its ``CUDA_VISIBLE_DEVICES``; None: all. As in CUDA, the first unknown device ends the list.
    """
    query = "--query-gpu=index,uuid,name,driver_version,memory.total"
    table = command_output(command, query, "--format=csv,noheader")
    rows = [line.split(", ") for line in table.splitlines()]
    gpus = [Gpu(*row) for row in rows if len(row) == 5]
    if allowed is None:
        return gpus
    devices = list(gpus)
    # nvidia-smi lists MIG devices, each after its GPU.
    listed = command_output(command, "-L").splitlines() if "MIG-" in allowed else []
    parent = None
    for line in listed:
        if match := _GPU_LINE.match(line):
            parent = _find(match["uuid"], gpus)
        if parent and (match := _MIG_LINE.match(line)):
            devices.append(Gpu("", match["uuid"], f"{parent.name} MIG {match['profile']}", parent.driver, ""))
    usable = []
    for identifier in devices_in(allowed):
        device = _find(identifier, devices)
        if not device:
            break
        usable.append(device)
    return usable


def gpu_links(gpus: Sequence[Gpu], command: str = "nvidia-smi") -> list[str]:
    """Return the link of each pair of GPUs: ``NV12``, ``SYS``."""
    # Empty for a single GPU, and where nvidia-smi can't tell.
    indices = [int(gpu.index) for gpu in gpus if gpu.index]
    if len(indices) < 2:
        return []
    links = {}
    for line in _ESCAPE.sub("", command_output(command, "topo", "-m")).splitlines():
        row, *cells = [cell.strip() for cell in line.split("\t")]
        if match := _TOPOLOGY_ROW.fullmatch(row):
            links[int(match["index"])] = cells
    with suppress(KeyError, IndexError):
        return [links[first][second] for first, second in combinations(indices, 2)]
    return []


def gpu_processes(gpus: Sequence[Gpu], command: str = "nvidia-smi") -> list[str]:
    """Return the processes on these GPUs: ``id, name, memory``."""
    if not gpus:
        return []
    uuids = ",".join(gpu.uuid for gpu in gpus)
    query = ("--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
    return command_output(command, *query, f"--id={uuids}").splitlines()


def devices_in(allowed: str) -> list[str]:
    """Return the devices of a list as CUDA reads it."""
    devices = []
    for identifier in map(str.strip, allowed.split(",")):
        if not (identifier.isdecimal() or identifier.startswith(("GPU-", "MIG-"))):
            break
        devices.append(identifier)
    return devices


def _find(identifier: str, devices: list[Gpu]) -> Gpu | None:
    """Return the device of an index or UUID."""
    return next(
        (device for device in devices if identifier == device.index or device.uuid.startswith(identifier)), None
    )


def command_output(*argv: str) -> str:
    """Return what a command prints, or "" if it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if done.returncode == 0:
        return done.stdout.strip()
    return ""


LOOPBACK = "loopback"
NVLINK = "NVLink"
SYSTEM_CLASSES = Path("/sys/class")
#: A rate in a name, in Gbit/s: ``100 Gbit/s InfiniBand``, ``25Gb/s``.
_RATE = re.compile(r"(?<![\d.])(\d++(?:\.\d++)?+)\s*G(?:b|bit|bps)(?:/s|/sec|ps)?\b")


def named_link(links: Sequence[str]) -> str:
    """Return the link between GPUs: ``NVLink (NV12)``."""
    kinds = sorted({NVLINK if link.startswith("NV") else "PCIe" for link in links})
    if links:
        return f"{' and '.join(kinds)} ({', '.join(sorted(set(links)))})"
    return ""


def network(classes: Path = SYSTEM_CLASSES) -> str:
    """Return each connected network card and InfiniBand port with its rate."""
    # As ``eth0 10 Gbit/s; mlx5_0 port 1 200 Gbit/s``. Interfaces without a card, as in a container, have rates that
    # mean nothing; a virtual card may have none.
    rates: dict[str, float] = {}
    for interface in sorted(classes.glob("net/*")):
        if (interface / "device").exists() or (interface / "bonding").exists():
            # The kernel has no rate of a card without a cable.
            with suppress(OSError, ValueError):
                rates[interface.name] = int((interface / "speed").read_text()) / 1000
    for port in sorted(classes.glob("infiniband/*/ports/*")):
        with suppress(OSError):
            if "ACTIVE" in (port / "state").read_text():
                rates[f"{port.parents[1].name} port {port.name}"] = _fastest((port / "rate").read_text())
    return "; ".join(f"{name} {rate:g} Gbit/s" for name, rate in rates.items() if rate > 0)


def link_contradictions(link: str, nodes: int, hardware: Mapping[str, Any]) -> Iterator[str]:
    """Yield why ``link`` contradicts the hardware of a node."""
    gpu_links, rates = hardware.get("gpu_links", ""), hardware.get("network", "")
    if nodes == 1 and NVLINK.casefold() in link.casefold() and gpu_links and NVLINK not in gpu_links:
        yield f"its GPUs are connected by {gpu_links}, but the cluster file has interconnect: {link}"
    if nodes > 1 and rates and _fastest(link) > _fastest(rates):
        yield f"its network is {rates}, but the cluster file has interconnect: {link}"


def _fastest(text: str) -> float:
    """Return the highest rate in a text, in Gbit/s; zero without one."""
    return max((float(rate) for rate in _RATE.findall(text)), default=0.0)
