"""What connects the devices of a run: as this machine reports it, and whether a cluster file may call it so."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

LOOPBACK = "loopback"
NVLINK = "NVLink"
SYSTEM_CLASSES = Path("/sys/class")
#: A rate in a name, in Gbit/s: ``100 Gbit/s InfiniBand``, ``25Gb/s``.
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*G(?:b|bit|bps)(?:/s|/sec|ps)?\b")


def named_link(links: Sequence[str]) -> str:
    """Return the link between GPUs, given that of each pair as ``nvidia-smi topo`` names it: ``NVLink (NV12)``."""
    kinds = sorted({NVLINK if link.startswith("NV") else "PCIe" for link in links})
    return f"{' and '.join(kinds)} ({', '.join(sorted(set(links)))})" if links else ""


def network(classes: Path = SYSTEM_CLASSES) -> str:
    """Return each connected network card and InfiniBand port with its rate.

    As ``eth0 10 Gbit/s; mlx5_0 port 1 200 Gbit/s``.
    Interfaces without a card, as in a container, have rates that mean nothing; a virtual card may have none.
    """
    rates = {name: rate for name, rate in (*_ethernet_rates(classes), *_infiniband_rates(classes)) if rate > 0}
    return "; ".join(f"{name} {rate:g} Gbit/s" for name, rate in rates.items())


def link_contradictions(link: str, nodes: int, hardware: Mapping[str, Any]) -> Iterator[str]:
    """Yield why ``link`` of a cluster file can't be what connects devices, given the hardware that a node reported."""
    gpu_links, rates = hardware.get("gpu_links", ""), hardware.get("network", "")
    if nodes == 1 and NVLINK.casefold() in link.casefold() and gpu_links and NVLINK not in gpu_links:
        yield f"its GPUs are connected by {gpu_links}, but the cluster file says link: {link}"
    if nodes > 1 and rates and _fastest(link) > _fastest(rates):
        yield f"its network is {rates}, but the cluster file says link: {link}"


def _ethernet_rates(classes: Path) -> Iterator[tuple[str, float]]:
    for interface in sorted(classes.glob("net/*")):
        if (interface / "device").exists() or (interface / "bonding").exists():
            # The kernel has no rate of a card without a cable.
            with suppress(OSError, ValueError):
                yield interface.name, int((interface / "speed").read_text()) / 1000


def _infiniband_rates(classes: Path) -> Iterator[tuple[str, float]]:
    for port in sorted(classes.glob("infiniband/*/ports/*")):
        with suppress(OSError):
            if "ACTIVE" in (port / "state").read_text():
                yield f"{port.parents[1].name} port {port.name}", _fastest((port / "rate").read_text())


def _fastest(text: str) -> float:
    """Return the highest rate in a text, in Gbit/s; zero without one."""
    return max((float(rate) for rate in _RATE.findall(text)), default=0.0)
