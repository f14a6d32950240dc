"""A node as ``check`` sees it: started where a guard would be, it answers questions until its input closes.

``python -m dlperf_study.guard.probe MARK``.
"""

import random
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from dlperf_study.cluster.software import measuring_code
from dlperf_study.errors import RunError
from dlperf_study.guard.installed_packages import installed_packages
from dlperf_study.guard.messages import Inbox, Message, line
from dlperf_study.guard.node_hardware import allowed_gpus, hardware, own_address
from dlperf_study.guard.node_load import cores_busy
from dlperf_study.guard.requests import CANDIDATES, PORTS

LOAD_SECONDS = 1.0
CONNECT_SECONDS = 3.0


def facts(asked: Message) -> dict[str, Any]:
    """Return what this node is and brings, as far as a run needs it."""
    folder = Path(asked["work_folder"] or tempfile.gettempdir())
    return {
        "hardware": hardware(allowed_gpus(asked["environment"])),
        "code": measuring_code(),
        "busy_cores": cores_busy(LOAD_SECONDS),
        "free_memory_bytes": psutil.virtual_memory().available,
        "address": _address(asked["network_interface"]),
        "work_folder": str(folder),
        "free_disk_bytes": shutil.disk_usage(_existing(folder)).free,
        "is_writable": _is_writable(_existing(folder)),
        "sees_shared_file": bool(asked["shared_file"]) and Path(asked["shared_file"]).is_file(),
        "software": {name: _software(python) for name, python in asked["pythons"].items()},
    }


def unreachable(endpoints: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the names of the endpoints, host and port each, that nothing answers at from here."""
    return [name for name, (host, port) in endpoints.items() if not _answers(host, port)]


def main() -> None:
    """Answer until nobody asks any more."""
    mark = sys.argv[1]
    inbox = Inbox(sys.stdin.fileno(), mark)
    with _listening() as chosen, socket.create_server(("", 0)) as given:
        ports = [one.getsockname()[1] for one in (chosen, given)]
        while not inbox.closed:
            for asked in inbox.receive(60):
                sys.stdout.buffer.write(line(mark, asked["kind"], _answer(asked, ports)))
                sys.stdout.buffer.flush()


def _listening() -> socket.socket:
    """Return a socket that listens on one of the ports that a run chooses from."""
    for port in random.sample(PORTS, CANDIDATES):
        with suppress(OSError):
            return socket.create_server(("", port))
    raise RunError(f"none of {CANDIDATES} ports from {PORTS.start} to {PORTS.stop - 1} that were tried is free")


def _answer(asked: Message, ports: Sequence[int]) -> Message:
    if asked["kind"] == "facts":
        return facts(asked) | {"ports": ports}
    if asked["kind"] == "connect":
        return {"unreachable": unreachable(asked["endpoints"])}
    return {"unix_seconds": time.time()}


def _address(interface: str) -> dict[str, str]:
    try:
        address, found = own_address(interface)
    except RunError as error:
        return {"error": str(error)}
    return {"address": address, "interface": found}


def _software(python: Sequence[str]) -> dict[str, Any]:
    try:
        return installed_packages(python)
    except RunError as error:
        return {"error": str(error)}


def _existing(folder: Path) -> Path:
    """Return the part of a path that is there; a run makes the rest."""
    return next(one for one in (folder, *folder.parents) if one.exists())


def _is_writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
