"""Try everything a run on a cluster will need, before the first one: what holds, and what to do about the rest."""

import shlex
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlperf_study import frameworks, launchers
from dlperf_study.execution.check_nodes import each_node, together
from dlperf_study.execution.check_slurm import NoNodes, allocated, partition, refused
from dlperf_study.execution.check_ways import ways
from dlperf_study.execution.finding import Finding, holds, missing
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


def check(cluster: Cluster) -> Iterator[Finding]:
    """Yield what was found, in the order it was tried; what needs something that is missing is not tried."""
    if cluster.launcher == "kubernetes":
        from dlperf_study.execution.check_kubernetes import check_kubernetes

        yield from check_kubernetes(cluster)
        return
    yield (commands := _commands(cluster.launcher))
    if commands.remedy:
        return
    if cluster.launcher == "slurm":
        yield from _in_slurm(cluster)
    else:
        yield from _on(cluster, launchers.load(cluster.launcher).places(cluster))


def _in_slurm(cluster: Cluster) -> Iterator[Finding]:
    yield (found := partition(cluster))
    if found.remedy:
        return
    try:
        with allocated(cluster) as places:
            yield from _on(cluster, places)
    except NoNodes as error:
        yield refused(cluster, str(error))


def _on(cluster: Cluster, there: Sequence[Place]) -> Iterator[Finding]:
    """Yield what is found on as many of these nodes as the cluster file says, and between them."""
    places = there[: cluster.nodes]
    yield _number(cluster, places)
    with probes(places) as asked, _shared_file(cluster) as shared_file:
        told = asked.ask("facts", **_question(cluster, shared_file))
        for place in places:
            yield from _node(cluster, place, asked, told)
        if told:
            yield from together(cluster, told, asked.clock_offsets())
        yield from ways(cluster, places, asked, told)


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


def _question(cluster: Cluster, shared_file: Path | None) -> dict[str, Any]:
    return {
        "work_folder": cluster.work_folder,
        "network_interface": cluster.network_interface,
        "environment": dict(cluster.environment),
        "shared_file": str(shared_file or ""),
        "pythons": {name: [*cluster.container, cluster.python_for(name)] for name in frameworks.names()},
    }


def _node(cluster: Cluster, place: Place, asked: Probes, told: Mapping[str, Message]) -> Iterator[Finding]:
    """Yield what a node says of itself, or why it says nothing."""
    if place.title in told:
        yield from each_node(cluster, place.title, told[place.title])
    else:
        yield missing(f"{place.title}: reached", asked.lost[place.title], _by_hand(cluster, place))


def _by_hand(cluster: Cluster, place: Place) -> str:
    """Return what a person may try where this package failed: how they would go there themselves."""
    question = (place.python, "-m", "dlperf_study.study.software")
    if cluster.launcher == "ssh":
        configured = ("-F", cluster.ssh.config_file) if cluster.ssh.config_file else ()
        words = ("ssh", *configured, place.name, shlex.join(question))
    elif cluster.launcher == "slurm":
        words = ("srun", f"--nodelist={place.name}", *devices_and_account(cluster), *question)
    else:
        words = question
    return f"try it by hand: {shlex.join(words)}"


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
