"""The ways from node to node: the ports of a run, and ssh for Horovod."""

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from dlperf_study import launchers
from dlperf_study.execution.finding import Finding, holds, missing, note, untried
from dlperf_study.execution.probing import Probes
from dlperf_study.launchers._base import Place
from dlperf_study.launchers._messages import Message
from dlperf_study.launchers._orders import PORTS
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.words import last_line

_BETWEEN = "ports between nodes"
_OPEN = (
    f"let the nodes reach each other on every TCP port: a run listens on {PORTS.start} to {PORTS.stop - 1}, and gloo, "
    "NCCL and Horovod on ports that the system chooses; or name the right network_interface"
)
_ONLY_HOROVOD = "only Horovod on several nodes needs it: give the first node a key that the others accept"
REACH_SECONDS = 30
#: A server of ssh turns away whom it has not yet let in, if there are many at once.
AT_ONCE = 4


def ways(cluster: Cluster, places: Sequence[Place], asked: Probes, told: Mapping[str, Message]) -> Iterator[Finding]:
    """Yield whether the nodes that were reached reach each other; ``told`` is what each of them said."""
    if len(places) == 1:
        return
    yield _ports(asked, told)
    if launchers.load(cluster.launcher).peers_by_ssh:
        yield from _by_ssh(places, told)


def _ports(asked: Probes, told: Mapping[str, Message]) -> Finding:
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


def _by_ssh(places: Sequence[Place], told: Mapping[str, Message]) -> Iterator[Finding]:
    """Yield whether the first node reaches each other by ssh, as horovodrun does."""
    first, *others = places
    if first.name not in told:
        yield untried(f"ssh from {first.name}", f"{first.name} was not reached")
        return
    reached = [place for place in others if place.name in told]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda place: _ssh(first, place), reached)
    yield from (
        untried(_way(first, place), f"{place.name} was not reached") for place in others if place not in reached
    )


def _ssh(first: Place, second: Place) -> Finding:
    text = shlex.join((*second.shell_argv(), "true"))
    try:
        done = subprocess.run([*first.shell_argv(), text], capture_output=True, text=True, timeout=REACH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return note(_way(first, second), str(error), _ONLY_HOROVOD)
    if done.returncode:
        return note(_way(first, second), last_line(done.stderr) or f"exit code {done.returncode}", _ONLY_HOROVOD)
    return holds(_way(first, second), "as Horovod needs it")


def _way(first: Place, second: Place) -> str:
    return f"ssh from {first.name} to {second.name}"
