"""Nodes that can be reached, tried one by one and together: what holds, and what to do about the rest."""

import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlperf_study import frameworks, launchers
from dlperf_study.check.nodes import each_node, together
from dlperf_study.check.result import CheckResult, holds, missing, note, untried
from dlperf_study.cluster import software
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.messages import Message
from dlperf_study.guard.probes import Probes, probes
from dlperf_study.guard.requests import PORTS
from dlperf_study.guard.submission import Node
from dlperf_study.launchers._base import Launcher
from dlperf_study.paths import outputs_folder
from dlperf_study.wording import last_line

# The ways from node to node: the ports of a run, and ssh for Horovod.


_BETWEEN = "ports between nodes"
_OPEN = (
    f"let the nodes reach each other on every TCP port: a run listens on {PORTS.start} to {PORTS.stop - 1}, and gloo, "
    "NCCL and Horovod on ports that the system chooses; or name the right network_interface"
)
_ONLY_HOROVOD = "only Horovod on several nodes needs it: give the first node a key that the others accept"
REACH_SECONDS = 30
#: A server of ssh turns away whom it has not yet let in, if there are many at once.
AT_ONCE = 4


def ways(cluster: Cluster, nodes: Sequence[Node], asked: Probes, told: Mapping[str, Message]) -> Iterator[CheckResult]:
    """Yield whether the nodes that were reached reach each other; ``told`` is what each of them said."""
    if len(nodes) == 1:
        return
    yield _ports(asked, told)
    if launchers.load(cluster.launcher).peers_by_ssh:
        yield from _by_ssh(nodes, told)


def _ports(asked: Probes, told: Mapping[str, Message]) -> CheckResult:
    """Return whether every node reaches every other, at the address and on such ports as a run uses."""
    if len(told) < 2:
        return untried(_BETWEEN, "fewer than two nodes were reached")
    if without := [name for name, facts in told.items() if "address" not in facts["address"]]:
        return untried(_BETWEEN, f"{', '.join(without)} can't be told by which address to be reached")
    endpoints = {
        f"{name} port {port}": (facts["address"]["address"], port)
        for name, facts in told.items()
        for port in facts["ports"]
    }
    answers = asked.ask("connect", endpoints=endpoints)
    if silent := [name for name in told if name not in answers]:
        return missing(_BETWEEN, "; ".join(f"{name} {asked.lost[name]}" for name in silent), "check again")
    closed = [f"{there} from {here}" for here, answer in answers.items() for there in answer["unreachable"]]
    if closed:
        return missing(_BETWEEN, f"no answer: {'; '.join(closed)}", _OPEN)
    interfaces = sorted({facts["address"]["interface"] for facts in told.values()})
    return holds(_BETWEEN, f"every node reaches every other over {', '.join(interfaces)}")


def _by_ssh(nodes: Sequence[Node], told: Mapping[str, Message]) -> Iterator[CheckResult]:
    """Yield whether the first node reaches each other by ssh, as horovodrun does."""
    first, *others = nodes
    if first.name not in told:
        yield untried(f"ssh from {first.name}", f"{first.name} was not reached")
        return
    reached = [node for node in others if node.name in told]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda node: _ssh(first, node), reached)
    yield from (untried(_way(first, node), f"{node.name} was not reached") for node in others if node not in reached)


def _ssh(first: Node, second: Node) -> CheckResult:
    text = shlex.join((*second.shell_argv(), "true"))
    try:
        done = subprocess.run([*first.shell_argv(), text], capture_output=True, text=True, timeout=REACH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return note(_way(first, second), str(error), _ONLY_HOROVOD)
    if done.returncode:
        return note(_way(first, second), last_line(done.stderr) or f"exit code {done.returncode}", _ONLY_HOROVOD)
    return holds(_way(first, second), "as Horovod needs it")


def _way(first: Node, second: Node) -> str:
    return f"ssh from {first.name} to {second.name}"


def commands(launcher: Launcher) -> CheckResult:
    """Return whether this machine has the commands that a launcher needs."""
    subject = f"launcher {launcher.name}"
    if lacking := [command for command in launcher.commands if not shutil.which(command)]:
        return missing(subject, f"no {', '.join(lacking)} here", launcher.commands_from)
    return holds(subject, ", ".join(launcher.commands) or "needs no program")


def on_nodes(cluster: Cluster, there: Sequence[Node]) -> Iterator[CheckResult]:
    """Yield what is found on as many of these nodes as the cluster file says, and between them."""
    nodes = there[: cluster.nodes]
    yield _number(cluster, nodes)
    with probes(nodes) as asked, _shared_file(cluster) as shared_file:
        told = asked.ask("facts", **_question(cluster, shared_file))
        for node in nodes:
            yield from _node(cluster, node, asked, told)
        if told:
            yield from together(cluster, told, asked.clock_offsets())
        yield from ways(cluster, nodes, asked, told)


def _number(cluster: Cluster, nodes: Sequence[Node]) -> CheckResult:
    if len(nodes) < cluster.nodes:
        found = f"{len(nodes)} of the {cluster.nodes} in the cluster file"
        return missing("nodes", found, "lower nodes in the cluster file, or name a partition that has as many")
    return holds("nodes", ", ".join(node.name for node in nodes if node.name) or "this machine")


def _question(cluster: Cluster, shared_file: Path | None) -> dict[str, Any]:
    return {
        "work_folder": cluster.work_folder,
        "network_interface": cluster.network_interface,
        "environment": dict(cluster.environment),
        "shared_file": str(shared_file or ""),
        "pythons": {name: [*cluster.container, cluster.python_for(name)] for name in frameworks.names()},
    }


def _node(cluster: Cluster, node: Node, asked: Probes, told: Mapping[str, Message]) -> Iterator[CheckResult]:
    """Yield what a node says of itself, or why it says nothing."""
    if node.title in told:
        yield from each_node(cluster, node.title, told[node.title])
    else:
        yield missing(f"{node.title}: reached", asked.lost[node.title], _by_hand(cluster, node))


def _by_hand(cluster: Cluster, node: Node) -> str:
    """Return what a person may try where this package failed: how they would go there themselves."""
    question = (node.python, "-m", software.MODULE)
    return f"try it by hand: {shlex.join(launchers.load(cluster.launcher).by_hand(cluster, node, question))}"


@contextmanager
def _shared_file(cluster: Cluster) -> Iterator[Path | None]:
    """Lay a file into outputs/ for other nodes to see, where they are said to."""
    if not cluster.shared_files or cluster.is_this_machine:
        yield None
        return
    file = outputs_folder() / f".check-{uuid.uuid4().hex}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)
