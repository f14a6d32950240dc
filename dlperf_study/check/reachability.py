"""Check nodes that can be reached: each node by itself, then all together, then the network between them."""

import shlex
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dlperf_study import frameworks
from dlperf_study.check.images import check_images
from dlperf_study.check.libraries import Facts, check_framework
from dlperf_study.check.network import check_ports, check_ssh_between
from dlperf_study.check.result import CheckResult, CheckStatus, missing, note, ok
from dlperf_study.cluster import software
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.gpu_support import is_named
from dlperf_study.cluster.library_answer import IMPORT_SECONDS
from dlperf_study.cluster.link import link_contradictions
from dlperf_study.guard.probe import ANSWER_SECONDS, start_probes
from dlperf_study.guard.submission import Node
from dlperf_study.paths import outputs_folder

#: Logs have the time of events; numbers never come from comparing clocks.
MAX_CLOCK_OFFSET_SECONDS = 1.0
MIN_MEMORY_BYTES, MIN_DISK_BYTES = 2e9, 2e8


def command_unchanged(cluster: Cluster, node: Node, argv: Sequence[str]) -> Sequence[str]:
    """Return a command as it is typed on this machine."""
    return argv


@dataclass(frozen=True)
class NodeAccess:
    """How a launcher reaches its nodes.

    ``commands`` must be on this machine, and ``commands_from`` says what installs them.
    ``by_hand(cluster, node, argv)`` is how a person would run a command on a node. ``peers_by_ssh``: the first node
    reaches the others by ssh, so it needs a key of its own.
    """

    launcher: str
    commands: tuple[str, ...] = ()
    commands_from: str = ""
    by_hand: Callable[[Cluster, Node, Sequence[str]], Sequence[str]] = command_unchanged
    peers_by_ssh: bool = False


def nodes_check(
    nodes: Callable[[Cluster], Sequence[Node]], access: NodeAccess
) -> Callable[[Cluster], Iterator[CheckResult]]:
    """Return the check of a launcher whose nodes can be reached at any time."""

    def check(cluster: Cluster) -> Iterator[CheckResult]:
        yield (result := check_commands(access))
        if not result.remedy:
            yield from check_nodes(cluster, nodes(cluster), access)

    return check


def check_commands(access: NodeAccess) -> CheckResult:
    """Return whether this machine has the commands that a launcher needs."""
    subject = f"launcher {access.launcher}"
    absent = [command for command in access.commands if not shutil.which(command)]
    if absent:
        return missing(subject, f"no {', '.join(absent)} here", access.commands_from)
    return ok(subject, ", ".join(access.commands) or "needs no program")


def check_nodes(cluster: Cluster, available: Sequence[Node], access: NodeAccess) -> Iterator[CheckResult]:
    """Yield the results of as many of these nodes as the cluster file has, and of the network between them."""
    nodes = available[: cluster.nodes]
    if len(nodes) < cluster.nodes:
        detail = f"{len(nodes)} of the {cluster.nodes} in the cluster file"
        remedy = "lower nodes in the cluster file, or name a partition that has as many"
        yield missing("nodes", detail, remedy)
    else:
        yield ok("nodes", ", ".join(node.name for node in nodes if node.name) or "this machine")
    with start_probes(nodes) as probes, _facts_request(cluster) as request:
        imports_seconds = len(frameworks.names()) * IMPORT_SECONDS if cluster.device == "gpu" else 0.0
        facts = probes.ask("facts", ANSWER_SECONDS + imports_seconds, **request)
        for node in nodes:
            if node.title in facts:
                yield from check_node(cluster, node.title, facts[node.title])
            else:
                argv = access.by_hand(cluster, node, (node.python, "-m", software.MODULE))
                yield missing(f"{node.title}: reached", probes.lost[node.title], f"try it by hand: {shlex.join(argv)}")
        if facts:
            yield from check_together(cluster, facts, probes.clock_offsets())
        if len(nodes) > 1:
            yield check_ports(probes, facts)
            if access.peers_by_ssh:
                yield from check_ssh_between(nodes, facts)


@contextmanager
def _facts_request(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Provide the request; if the cluster shares files, it names one in ``outputs/`` that every node must see."""
    request = {
        "work_folder": cluster.work_folder,
        "network_interface": cluster.network_interface,
        "environment": dict(cluster.environment),
        "device": cluster.device,
        "shared_file": "",
        "image_sets": dict(cluster.image_sets),
        "pythons": {name: [*cluster.container, cluster.python_for(name)] for name in frameworks.names()},
    }
    if not cluster.shared_files or cluster.is_this_machine:
        yield request
        return
    file = outputs_folder() / f".check-{uuid.uuid4().hex}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    try:
        yield request | {"shared_file": str(file)}
    finally:
        file.unlink(missing_ok=True)


def check_node(cluster: Cluster, name: str, facts: Facts) -> Iterator[CheckResult]:
    """Yield what one node has and what is missing there."""
    yield ok(f"{name}: reached", f"{facts['hardware']['host']}, {facts['hardware']['cpu_model']}")
    yield _devices(cluster, f"{name}: devices", facts["hardware"])
    yield from _link(cluster, f"{name}: link", facts["hardware"])
    busy = f"{facts['busy_cores']:.1f} cores busy"
    if facts["busy_cores"] <= cluster.idle_max_busy_cores:
        yield ok(f"{name}: idle", busy)
    else:
        wait = f"{cluster.idle_wait_seconds:.0f} s"
        yield note(
            f"{name}: idle", busy, f"a run waits {wait}, then starts with a diagnostic: end what else runs there"
        )
    if processes := facts["gpu_processes"]:
        remedy = (
            "a run starts next to them, with a diagnostic: end them, or leave their GPUs out of CUDA_VISIBLE_DEVICES"
        )
        yield note(f"{name}: GPUs idle", f"in use: {'; '.join(processes)}", remedy)
    yield _enough(f"{name}: memory", "free", facts["free_memory_bytes"], MIN_MEMORY_BYTES)
    yield _folder(cluster, name, facts)
    if cluster.is_this_machine:
        return
    address = facts["address"]
    if "error" in address:
        yield missing(f"{name}: address", address["error"], "set network_interface in the cluster file")
    else:
        yield ok(f"{name}: address", f"{address['address']} on {address['interface']}")


def check_together(
    cluster: Cluster, facts: Mapping[str, Facts], clock_offsets: Mapping[str, float]
) -> Iterator[CheckResult]:
    """Yield whether all nodes would run the same; facts and clock offsets (seconds) are by name of node."""
    first, *_ = facts
    code = facts[first]["code"]
    if different := [name for name in facts if facts[name]["code"] != code]:
        detail = f"different on {', '.join(different)} than on {first}"
        yield missing("measuring code", detail, "bring all to the same commit")
    else:
        yield ok("measuring code", f"the same everywhere ({code[:12]})")
    results = [check_framework(cluster, name, facts) for name in frameworks.names()]
    yield from results
    yield from check_images(cluster, facts)
    if not any(result.status is CheckStatus.OK for result in results):
        yield missing("a framework", "none can train", "install one on every node: docs/clusters.md")
    if cluster.is_this_machine:
        return
    wrong = []
    for name, offset in clock_offsets.items():
        if abs(offset) > MAX_CLOCK_OFFSET_SECONDS:
            wrong.append(f"{name} {offset:+.1f} s")
    if wrong:
        yield note("clocks", ", ".join(wrong), "set them by NTP; no number depends on it, but times in logs do")
    else:
        yield ok("clocks", f"within {MAX_CLOCK_OFFSET_SECONDS:.0f} s of this machine")


def _devices(cluster: Cluster, subject: str, hardware: Facts) -> CheckResult:
    if cluster.device == "cpu":
        count, name = hardware["cores"], hardware["cpu_model"]
    else:
        names = [gpu for gpu in hardware.get("gpu_names", "").split("; ") if gpu]
        count, name = len(names), names[0] if names else "no GPU"
    detail = f"{count} × {name}"
    if count < cluster.devices_per_node:
        return missing(subject, detail, f"the cluster file says devices_per_node: {cluster.devices_per_node}; lower it")
    remedy = f"the cluster file says {cluster.device_name!r}; write device_name: {name}"
    if cluster.device == "gpu" and not is_named(cluster.device_name, name):
        return missing(subject, detail, remedy)
    if cluster.device == "cpu" and cluster.device_name != name:
        return note(subject, detail, remedy)
    if cluster.why_not_gpu:
        return note(subject, detail, cluster.why_not_gpu)
    return ok(subject, detail)


def _link(cluster: Cluster, subject: str, hardware: Facts) -> Iterator[CheckResult]:
    """Yield whether the link of the cluster file can be the one that the node reports, where it reports one."""
    on_gpu = cluster.device == "gpu"
    measured = hardware.get("network") if cluster.nodes > 1 else hardware.get("gpu_links") if on_gpu else ""
    if contradiction := next(link_contradictions(cluster.link, cluster.nodes, hardware), ""):
        yield missing(subject, contradiction, "correct link in the cluster file: captions have it")
    elif measured:
        yield ok(subject, measured)


def _enough(subject: str, label: str, available_bytes: float, min_bytes: float) -> CheckResult:
    detail = f"{available_bytes / 1e9:.1f} GB {label}"
    if available_bytes < min_bytes:
        return missing(subject, detail, f"a run needs at least {min_bytes / 1e9:.1f} GB")
    return ok(subject, detail)


def _folder(cluster: Cluster, name: str, facts: Facts) -> CheckResult:
    """Return whether a node can write to its folder, or sees what this machine writes to ``outputs/``."""
    if not cluster.is_this_machine and cluster.shared_files:
        if facts["sees_shared_file"]:
            return ok(f"{name}: outputs/", "is shared with this machine")
        return missing(
            f"{name}: outputs/",
            "is not the one of this machine",
            "put it on a shared file system and name it by DLPERF_STUDY_OUTPUTS, or (ssh only) say shared_files: false",
        )
    subject = f"{name}: {facts['work_folder']}"
    if not facts["is_writable"]:
        return missing(subject, "can't be made or written", "name another work_folder in the cluster file")
    return _enough(subject, "free", facts["free_disk_bytes"], MIN_DISK_BYTES)
