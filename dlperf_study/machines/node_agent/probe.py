"""Probes for the check of a cluster: a program on each node that answers questions until its input closes.

``python -m dlperf_study.machines.node_agent.probe MARK``, started where a node agent would be. ``start_probes`` starts
them on all nodes.
"""

import os
import random
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from dlperf_study.core import code_identity, restoring, writing
from dlperf_study.core.errors import RunError
from dlperf_study.machines.cluster.hardware import gpu_processes, usable_gpus
from dlperf_study.machines.cluster.software import gpu_answer, library_answer
from dlperf_study.machines.node_agent import agents, node_hardware, node_load
from dlperf_study.machines.node_agent.coordinator import CANDIDATES, PORTS
from dlperf_study.machines.node_agent.installed_packages import installed_packages
from dlperf_study.machines.node_agent.messages import Inbox, Message, line
from dlperf_study.machines.node_agent.submission import Node
from dlperf_study.machines.supervision.processes import new_mark
from dlperf_study.study import environment_variables, gpu_support

MODULE = "dlperf_study.machines.node_agent.probe"
ANSWER_SECONDS = 90.0
LOAD_SECONDS = 1.0
CONNECT_SECONDS = 3.0


class Probes:
    """The reachable nodes by name, and why others are lost."""

    def __init__(self, channels: Mapping[str, agents.Channel], lost: Mapping[str, str]) -> None:
        self._channels = dict(channels)
        self.lost = dict(lost)

    def ask(self, kind: str, within_seconds: float = ANSWER_SECONDS, **values: Any) -> dict[str, Message]:
        """Send a request to all nodes; return their answers."""
        for channel in self._channels.values():
            channel.send(kind, **values)
        deadline = time.monotonic() + within_seconds
        answers = {}
        for name, channel in list(self._channels.items()):
            answer = _receive(channel, deadline)
            if answer is None:
                self.lost[name] = str(channel.loss()["reason"])
                del self._channels[name]
            else:
                answers[name] = answer
        return answers

    def clock_offsets(self) -> dict[str, float]:
        """Return how many seconds each node's clock is ahead."""
        offsets = {}
        for name, channel in self._channels.items():
            sent = time.time()
            channel.send("clock")
            if answer := _receive(channel, time.monotonic() + ANSWER_SECONDS):
                offsets[name] = answer["unix_seconds"] - (sent + time.time()) / 2
        return offsets


@contextmanager
def start_probes(nodes: Sequence[Node]) -> Iterator[Probes]:
    """Start a probe on each node; at the end none is left."""
    mark = new_mark()
    channels: dict[str, agents.Channel] = {}
    lost: dict[str, str] = {}
    try:
        for index, node in enumerate(nodes):
            try:
                channels[node.title] = agents.Channel(index, node, mark, MODULE)
            except OSError as error:
                lost[node.title] = str(error)
        yield Probes(channels, lost)
    finally:
        for channel in channels.values():
            channel.close()


def _receive(channel: agents.Channel, deadline: float) -> Message | None:
    """Return the next answer of a node, or None."""
    while not channel.inbox.closed and (remaining := deadline - time.monotonic()) > 0:
        if messages := channel.inbox.receive(remaining):
            return messages[0]
    return None


def main() -> None:
    """Answer until the input closes; listen on two ports meanwhile."""
    mark = sys.argv[1]
    inbox = Inbox(sys.stdin.fileno(), mark)
    with _listen_as_a_run() as first, socket.create_server(("", 0)) as second:
        ports = [first.getsockname()[1], second.getsockname()[1]]
        while not inbox.closed:
            for request in inbox.receive(60):
                answer: Message = {"unix_seconds": time.time()}
                if request["kind"] == "facts":
                    answer = facts(request) | {"ports": ports}
                elif request["kind"] == "connect":
                    answer = {"unreachable": unreachable(request["endpoints"])}
                sys.stdout.buffer.write(line(mark, request["kind"], answer))
                sys.stdout.buffer.flush()


def _listen_as_a_run() -> socket.socket:
    """Return a socket that listens on a run's port."""
    for port in random.sample(PORTS, CANDIDATES):
        with suppress(OSError):
            return socket.create_server(("", port))
    raise RunError(f"{CANDIDATES} ports from {PORTS.start} to {PORTS.stop - 1} were tried, and none is free")


def facts(request: Message) -> dict[str, Any]:
    """Return what this node has, as far as a run needs it."""
    folder = Path(request["work_folder"] or tempfile.gettempdir())
    interface = request["network_interface"]
    # A run creates the rest of the path.
    existing = writing.existing_folder(folder)
    address = _or_error(lambda: dict(zip(("address", "interface"), node_hardware.own_address(interface), strict=True)))
    software = {}
    for framework, python in request["pythons"].items():
        query = partial(installed_packages, python, request["packages"], code_roots=request["code_roots"])
        software[framework] = _or_error(query)
    is_writable = False
    with suppress(OSError), tempfile.TemporaryFile(dir=existing):
        is_writable = True
    allowed = node_hardware.allowed_gpus(request["environment"])
    return {
        "hardware": node_hardware.hardware(allowed),
        "gpu_processes": gpu_processes(usable_gpus(allowed)) if request["device"] == "gpu" else [],
        "code": code_identity.code_digest(request["code_roots"]),
        "busy_cores": node_load.cores_busy(LOAD_SECONDS),
        "free_memory_bytes": psutil.virtual_memory().available,
        "address": address,
        "work_folder": str(folder),
        "free_disk_bytes": shutil.disk_usage(existing).free,
        "is_writable": is_writable,
        "sees_shared_file": bool(request["shared_file"]) and Path(request["shared_file"]).is_file(),
        "image_datasets": _class_counts(request),
        "software": software,
        "gpu_support": _gpu_supports(request) if request["device"] == "gpu" else {},
    }


def _gpu_supports(request: Message) -> dict[str, dict[str, Any] | None]:
    """Return the GPU support of each framework here."""
    environment = (
        restoring.restored(environment_variables.PassedVariables, request["variables"]).passed()
        | request["environment"]
    )
    supports = {}
    for framework, python in request["pythons"].items():
        question = restoring.restored(gpu_support.GpuQuestion, request["gpu_questions"][framework])
        supports[framework] = _or_error(partial(gpu_answer, python, question, environment))
    return supports


def _class_counts(request: Message) -> dict[str, dict[str, Any] | None]:
    """Return the ``classes`` of each image dataset, or ``error``."""
    counts = {}
    for name, folder in request["image_datasets"].items():
        argv = (sys.executable, *request["classes_question"], folder)
        counts[name] = _or_error(partial(library_answer, argv, os.environ))
    return counts


def _or_error(ask: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the answer to a question, or ``error``."""
    try:
        return ask()
    except RunError as error:
        return {"error": str(error)}


def unreachable(endpoints: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the endpoints that refuse a connection."""
    names = []
    for name, (host, port) in endpoints.items():
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
        except OSError:
            names.append(name)
    return names


if __name__ == "__main__":
    main()
