"""Check that nodes reach each other: on the ports of a run, and by ssh where Horovod starts its ranks."""

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from dlperf_study.check.result import CheckResult, missing, note, ok, untested
from dlperf_study.guard.messages import Message
from dlperf_study.guard.probe import Probes
from dlperf_study.guard.requests import PORTS
from dlperf_study.guard.submission import Node
from dlperf_study.wording import last_line

_PORTS = "ports between nodes"
_OPEN_PORTS = (
    f"let the nodes reach each other on every TCP port: a run listens on {PORTS.start} to {PORTS.stop - 1}, and gloo, "
    "NCCL and Horovod on ports that the system chooses; or name the right network_interface"
)
_ONLY_HOROVOD = "only Horovod on several nodes needs it: give the first node a key that the others accept"
SSH_SECONDS = 30
#: An ssh server refuses connections when too many at once are not yet authenticated.
MAX_SSH_AT_ONCE = 4


def check_ports(probes: Probes, facts: Mapping[str, Message]) -> CheckResult:
    """Return whether every node reaches every other node, at the address and on such ports as a run uses."""
    if len(facts) < 2:
        return untested(_PORTS, "fewer than two nodes were reached")
    if without := [name for name, of_node in facts.items() if "address" not in of_node["address"]]:
        return untested(_PORTS, f"{', '.join(without)} can't be told by which address to be reached")
    endpoints = {}
    for name, of_node in facts.items():
        for port in of_node["ports"]:
            endpoints[f"{name} port {port}"] = (of_node["address"]["address"], port)
    answers = probes.ask("connect", endpoints=endpoints)
    if silent := [name for name in facts if name not in answers]:
        return missing(_PORTS, "; ".join(f"{name} {probes.lost[name]}" for name in silent), "check again")
    closed = []
    for name, answer in answers.items():
        closed += [f"{endpoint} from {name}" for endpoint in answer["unreachable"]]
    if closed:
        return missing(_PORTS, f"no answer: {'; '.join(closed)}", _OPEN_PORTS)
    interfaces = sorted({of_node["address"]["interface"] for of_node in facts.values()})
    return ok(_PORTS, f"every node reaches every other over {', '.join(interfaces)}")


def check_ssh_between(nodes: Sequence[Node], facts: Mapping[str, Message]) -> Iterator[CheckResult]:
    """Yield whether the first node reaches each other node by ssh, as horovodrun does."""
    first, *peers = nodes
    if first.name not in facts:
        yield untested(f"ssh from {first.name}", f"{first.name} was not reached")
        return
    reached = [node for node in peers if node.name in facts]
    with ThreadPoolExecutor(MAX_SSH_AT_ONCE) as pool:
        yield from pool.map(lambda node: _check_ssh(first, node), reached)
    for node in peers:
        if node not in reached:
            yield untested(f"ssh from {first.name} to {node.name}", f"{node.name} was not reached")


def _check_ssh(first: Node, second: Node) -> CheckResult:
    subject = f"ssh from {first.name} to {second.name}"
    command = shlex.join((*second.shell_argv(), "true"))
    try:
        done = subprocess.run([*first.shell_argv(), command], capture_output=True, text=True, timeout=SSH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return note(subject, str(error), _ONLY_HOROVOD)
    if done.returncode:
        return note(subject, last_line(done.stderr) or f"exit code {done.returncode}", _ONLY_HOROVOD)
    return ok(subject, "as Horovod needs it")
