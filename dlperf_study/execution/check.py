"""Try everything a run on a cluster will need, before the first one: what holds, and what to do about the rest."""

import os
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dlperf_study import frameworks, launchers
from dlperf_study.execution.check_nodes import each_node, together
from dlperf_study.execution.finding import Finding, holds, missing, note
from dlperf_study.execution.probing import Probes, probes
from dlperf_study.launchers._base import Place
from dlperf_study.launchers._messages import Message
from dlperf_study.launchers._slurm_script import devices_and_account
from dlperf_study.paths import outputs_folder
from dlperf_study.study.cluster import Cluster

#: The commands of a launcher that this machine must have, and what brings them.
COMMANDS = {
    "ssh": (("ssh",), "install an ssh client (openssh-client)"),
    "slurm": (("sbatch", "srun", "salloc", "scontrol", "squeue", "scancel"), "run this where Slurm's commands are"),
}
_ONLY_HOROVOD = "only Horovod on several nodes needs it: give the first node a key that the others accept"
ALLOCATION_MINUTES, ALLOCATION_SECONDS = 5, 300
REACH_SECONDS = 30


def check(cluster: Cluster) -> Iterator[Finding]:
    """Yield what was found, in the order it was tried; what needs something that is missing is not tried."""
    if cluster.launcher == "kubernetes":
        from dlperf_study.execution.check_kubernetes import check_kubernetes

        yield from check_kubernetes(cluster)
        return
    yield (commands := _commands(cluster.launcher))
    if commands.remedy:
        return
    places = launchers.load(cluster.launcher).places(cluster)[: cluster.nodes]
    yield _number(cluster, places)
    with probes(places) as asked, _shared_file(cluster) as shared_file:
        yield from _nodes(cluster, asked, str(shared_file or ""))
    if len(places) > 1 and cluster.launcher == "ssh":
        yield _ssh_between(places)


def allocation(cluster: Cluster, command: Sequence[str]) -> list[str]:
    """Return the argv that runs a command inside an allocation of all nodes of a Slurm cluster."""
    settings = cluster.slurm
    return [
        *("salloc", f"--nodes={cluster.nodes}", "--ntasks-per-node=1", f"--time={ALLOCATION_MINUTES}", "--quiet"),
        f"--immediate={min(ALLOCATION_SECONDS, round(settings.start_within_seconds))}",
        *devices_and_account(cluster),
        *settings.options,
        *command,
    ]


def in_allocation(cluster: Cluster, command: Sequence[str]) -> int:
    """Run a command inside an allocation of all nodes of a Slurm cluster; return its exit code, 1 without one."""
    return subprocess.run(allocation(cluster, command)).returncode


def needs_allocation(cluster: Cluster) -> bool:
    """Return whether the nodes have no names yet: those of Slurm have some only inside a job."""
    return cluster.launcher == "slurm" and "SLURM_JOB_ID" not in os.environ and bool(shutil.which("salloc"))


def _commands(launcher: str) -> Finding:
    programs, remedy = COMMANDS.get(launcher, ((), ""))
    lacking = [program for program in programs if not shutil.which(program)]
    if lacking:
        return missing(f"launcher {launcher}", f"no {', '.join(lacking)} here", remedy)
    return holds(f"launcher {launcher}", ", ".join(programs) or "needs no program")


def _number(cluster: Cluster, places: Sequence[Place]) -> Finding:
    if len(places) < cluster.nodes:
        found = f"{len(places)} of the {cluster.nodes} in the cluster file"
        return missing("nodes", found, "lower nodes in the cluster file, or name a partition that has as many")
    return holds("nodes", ", ".join(place.name for place in places if place.name) or "this machine")


def _nodes(cluster: Cluster, asked: Probes, shared_file: str) -> Iterator[Finding]:
    """Yield what all nodes say of themselves, of each other, and of what lies between them."""
    told = asked.ask(
        "facts",
        work_folder=cluster.work_folder,
        network_interface=cluster.network_interface,
        environment=dict(cluster.environment),
        shared_file=shared_file,
        pythons={name: [*cluster.container, cluster.python_for(name)] for name in frameworks.names()},
    )
    for name, reason in asked.lost.items():
        yield missing(f"{name}: reached", reason, _how_to_reach(cluster, name))
    for name, facts in told.items():
        yield from each_node(cluster, name, facts)
    if told:
        yield from together(cluster, told, asked.clock_offsets())
    if len(told) > 1:
        yield _ports(cluster, asked, told)


def _how_to_reach(cluster: Cluster, name: str) -> str:
    """Return what a person may try where this package failed."""
    [place] = [p for p in launchers.load(cluster.launcher).places(cluster) if p.title == name]
    return f"try it by hand: {shlex.join(place.argv('-m', 'dlperf_study.study.software'))}"


def _ports(cluster: Cluster, asked: Probes, told: Mapping[str, Message]) -> Finding:
    endpoints = {n: (f["address"]["address"], f["port"]) for n, f in told.items() if "address" in f["address"]}
    answers = asked.ask("connect", endpoints=endpoints)
    closed = [f"{there} from {here}" for here, answer in answers.items() for there in answer["unreachable"]]
    if closed:
        remedy = "open the ports 20000 to 32767 between the nodes, or name the right network_interface"
        return missing("ports between nodes", f"no answer: {'; '.join(closed)}", remedy)
    return holds("ports between nodes", f"every node reaches every other over {_interfaces(told)}")


def _interfaces(told: Mapping[str, Message]) -> str:
    return ", ".join(sorted({facts["address"].get("interface", "an unknown interface") for facts in told.values()}))


def _ssh_between(places: Sequence[Place]) -> Finding:
    """Return whether the first node reaches another by ssh, as horovodrun does."""
    first, second = places[:2]
    text = shlex.join((*second.shell_argv(), "true"))
    subject = f"ssh from {first.name} to {second.name}"
    try:
        done = subprocess.run([*first.shell_argv(), text], capture_output=True, text=True, timeout=REACH_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return note(subject, str(error), _ONLY_HOROVOD)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return note(subject, last[0], _ONLY_HOROVOD)
    return holds(subject, "as Horovod needs it")


@contextmanager
def _shared_file(cluster: Cluster) -> Iterator[Path | None]:
    """Lay a file into outputs/ for other nodes to see, where they are said to."""
    if not cluster.shared_files or cluster.launcher == "local":
        yield None
        return
    file = outputs_folder() / f".check-{uuid.uuid4().hex}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)
