"""The hardware, the address and the free ports of this node."""

import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

from dlperf_study.core.errors import RunError
from dlperf_study.core.wording import counted
from dlperf_study.machines.cluster.hardware import (
    cpu_name,
    devices_in,
    gpu_links,
    named_link,
    network,
    usable_cpus,
    usable_gpus,
)
from dlperf_study.study.environment_variables import VISIBLE_DEVICES

#: The instruction sets that decide how fast a CPU multiplies matrices.
FLAGS = (
    *("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16"),
    *("asimd", "sve"),
)
#: The units in which the kernel shows sizes of caches.
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def hardware(allowed_gpus: str | None = None) -> dict[str, Any]:
    """Return the hardware of this node, with these GPUs."""
    information = _read("/proc/cpuinfo") or ""
    flags = re.findall(r"^(?:flags|Features)\s*:(.*)", information, re.MULTILINE)
    flags_of_first_core = flags[0].split() if flags else []
    facts = {
        "host": socket.gethostname(),
        "cpu_model": cpu_name(),
        "cpu_flags": " ".join(flag for flag in FLAGS if flag in flags_of_first_core),
        "cpu_cores_physical": psutil.cpu_count(logical=False),
        "cpu_cores_logical": psutil.cpu_count(),
        "cores": usable_cpus(),
        "cpu_mhz": cpu_clock(information),
        "cpu_cache_bytes": largest_cache(),
        "cpu_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": psutil.virtual_memory().total,
        "network": network(),
    }
    if gpus := usable_gpus(allowed_gpus):
        facts["gpu_names"] = "; ".join(gpu.name for gpu in gpus)
        facts["gpu_driver"] = gpus[0].driver
        facts["gpu_memory"] = gpus[0].memory
        facts["gpu_links"] = named_link(gpu_links(gpus))
    return facts


def cpu_clock(information: str) -> float | None:
    """Return the clock of the first core in MHz, or None."""
    clock = re.search(r"^cpu MHz\s*:\s*([0-9.]+)$", information, re.MULTILINE)
    if clock:
        return float(clock[1])
    return None


def largest_cache(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int | None:
    """Return the bytes of the largest cache, or None."""
    sizes = []
    for file in folder.glob("index*/size"):
        if size := re.fullmatch(r"([0-9]+)([KMG]?)", _read(str(file)) or ""):
            sizes.append(int(size[1]) * _UNITS[size[2]])
    return max(sizes, default=None)


def allowed_gpus(variables: Mapping[str, str]) -> str | None:
    """Return the list of GPUs that a run may use."""
    return variables.get(VISIBLE_DEVICES, os.environ.get(VISIBLE_DEVICES))


def first_devices(allowed: str | None, wanted: int) -> str:
    """Return the first ``wanted`` devices of a list; raises RunError."""
    if allowed is None:
        return ",".join(map(str, range(wanted)))
    devices = devices_in(allowed)
    if len(devices) < wanted:
        raise RunError(
            f"{VISIBLE_DEVICES}={allowed} allows {counted(len(devices), 'GPU')} here, but the run needs {wanted}"
        )
    if wanted > 1 and any(device.startswith("MIG-") for device in devices[:wanted]):
        raise RunError(
            f"{VISIBLE_DEVICES}={allowed}: CUDA shows a process one MIG device only; devices_per_node must be 1"
        )
    return ",".join(devices[:wanted])


def free_ports(candidates: Iterable[int]) -> list[int]:
    """Return those candidates on which nothing listens here, at any address."""
    ports = []
    with ExitStack() as stack:
        for port in candidates:
            with suppress(OSError):
                # Bound until all are tried.
                stack.enter_context(socket.socket()).bind(("", port))
                ports.append(port)
    return ports


def own_address(interface: str, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return this node's IPv4 address and its interface; raises RunError when that is ambiguous."""
    # The address of ``interface`` if one is named; otherwise that of the ssh connection, that of this host's name, or
    # the only one.
    addresses = _addresses()
    if interface:
        if interface not in addresses:
            names = ", ".join(addresses)
            raise RunError(
                f"network_interface {interface} has no IPv4 address here; interfaces with an address: {names}"
            )
        return addresses[interface], interface
    external = {name: a for name, a in addresses.items() if not ipaddress.ip_address(a).is_loopback}
    interfaces = {address: name for name, address in external.items()}
    ssh_address = environment.get("SSH_CONNECTION", "").split()[2:3]
    for address in (*ssh_address, *_named_addresses()):
        if address in interfaces:
            return address, interfaces[address]
    if len(external) == 1:
        [(name, address)] = external.items()
        return address, name
    names = ", ".join(external) or "none but loopback"
    raise RunError(f"no unique address for other nodes; set network_interface in the cluster file ({names})")


def _addresses() -> dict[str, str]:
    """Return the first IPv4 address of each network interface."""
    addresses: dict[str, str] = {}
    for name, interface_addresses in psutil.net_if_addrs().items():
        for interface_address in interface_addresses:
            if interface_address.family == socket.AF_INET:
                addresses.setdefault(name, interface_address.address)
    return addresses


def _named_addresses() -> list[str]:
    try:
        return socket.gethostbyname_ex(socket.gethostname())[2]
    except OSError:
        return []


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
