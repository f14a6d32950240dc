"""Nodes that can be reached, tried one by one and together: what holds, and what to do about the rest."""

import shlex
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlperf_study import frameworks, launchers
from dlperf_study.execution.check_nodes import each_node, together
from dlperf_study.execution.check_ways import ways
from dlperf_study.execution.finding import Finding, holds, missing
from dlperf_study.execution.probing import Probes, probes
from dlperf_study.launchers._base import Launcher, Place
from dlperf_study.launchers._messages import Message
from dlperf_study.paths import outputs_folder
from dlperf_study.study import software
from dlperf_study.study.cluster import Cluster


def commands(launcher: Launcher) -> Finding:
    """Return whether this machine has the commands that a launcher needs."""
    subject = f"launcher {launcher.name}"
    if lacking := [command for command in launcher.commands if not shutil.which(command)]:
        return missing(subject, f"no {', '.join(lacking)} here", launcher.commands_from)
    return holds(subject, ", ".join(launcher.commands) or "needs no program")


def on_places(cluster: Cluster, there: Sequence[Place]) -> Iterator[Finding]:
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
    question = (place.python, "-m", software.MODULE)
    return f"try it by hand: {shlex.join(launchers.load(cluster.launcher).by_hand(cluster, place, question))}"


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
