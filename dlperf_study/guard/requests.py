"""What the nodes of one run are asked and told, and what they said of themselves."""

import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dlperf_study.cluster.environment_variables import WITHHELD, travelling_environment
from dlperf_study.guard.guards import RunFailed
from dlperf_study.guard.messages import Message
from dlperf_study.guard.submission import Command, Node, Submission, fill
from dlperf_study.study.job import Outcome

#: Below the ports that systems give to outgoing connections.
PORTS = range(20_000, 32_768)
CANDIDATES = 64


@dataclass
class ConductedRun:
    """What is known of a run so far; ``ordered`` are the nodes that were told what to start."""

    submission: Submission
    nodes: tuple[Node, ...]
    mark: str
    ready: dict[int, Message] = field(default_factory=dict)
    ordered: set[int] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def commands_on(self, node: int) -> list[Command]:
        """Return what one node is to start."""
        return [command for command in self.submission.commands if command.node == node]


def prepare_request(submission: Submission) -> dict[str, Any]:
    """Return what every node is asked to get ready for; raises RunFailed where a variable was not passed on."""
    return {
        "idle_max_busy_cores": submission.idle_max_busy_cores,
        "idle_wait_seconds": submission.idle_wait_seconds,
        "network_interface": submission.network_interface,
        "has_peers": submission.nodes > 1,
        "gpus_per_node": submission.gpus_per_node,
        "ports": random.sample(PORTS, CANDIDATES * bool(submission.ports)),
        "python": submission.python,
        "pass_environment": submission.pass_environment,
        "environment": travelling_environment(os.environ, submission.pass_environment) | _given(submission),
    }


def start_requests(run: ConductedRun) -> dict[int, dict[str, Any]]:
    """Return what each node is told to start; raises RunFailed where too few ports are free on all nodes."""
    values, reach = _values(run), _reach(run)
    alike = {
        "folder": fill(run.submission.folder_there, values),
        "apart": fill(run.submission.node_folder, values),
        "files": dict(run.submission.files),
        "rank_output": run.submission.rank_output,
        "reach": reach,
    }
    return {
        node: {**alike, "commands": [_filled(command, values) for command in run.commands_on(node)]}
        for node in run.ready
    }


def node_facts(run: ConductedRun, node: int, result: Message | None) -> dict[str, Any]:
    """Return what a node said of itself, and what its guard saw of others during the run."""
    said = run.ready[node]
    during = {"busy_cores_during": result["busy_cores"] if result else None}
    facts = {name: said[name] for name in ("address", "interface", "devices", "hardware", "software", "variables")}
    return {"node": node, "name": run.nodes[node].name, **facts, "load": said["load"] | during}


def _given(submission: Submission) -> dict[str, str]:
    """Return the variables of the cluster file; a value that a record withholds must be in our own environment."""
    withheld = {name for name, value in submission.environment.items() if value == WITHHELD}
    if missing := sorted(withheld - os.environ.keys()):
        raise RunFailed(Outcome.FAILED, f"{', '.join(missing)}: given in the cluster file, but not passed on to here")
    return {name: os.environ[name] if name in withheld else value for name, value in submission.environment.items()}


def _values(run: ConductedRun) -> dict[str, str]:
    """Return what is filled in, now that the nodes have said where they are and which ports are free on all."""
    free = set.intersection(*(set(said["ports"]) for said in run.ready.values()))
    if len(free) < run.submission.ports:
        raise RunFailed(Outcome.FAILED, f"only {len(free)} of {CANDIDATES} ports tried are free on all nodes")
    ports = {f"port_{n}": str(port) for n, port in zip(range(run.submission.ports), sorted(free), strict=False)}
    hosts = {f"host_{node}": run.nodes[node].address or said["address"] for node, said in run.ready.items()}
    interfaces = {f"interface_{node}": said["interface"] for node, said in run.ready.items()}
    devices = {f"devices_{node}": said["devices"] for node, said in run.ready.items()}
    return ports | hosts | interfaces | devices | {"unique": run.mark.partition("@")[0]}


def _reach(run: ConductedRun) -> dict[str, list[str]]:
    """Return how one node reaches the others, by address, where a node has to: it gets no command from here."""
    if all(run.commands_on(node) for node in run.ready):
        return {}
    addresses = {node: run.nodes[node].address or said["address"] for node, said in run.ready.items()}
    return {address: list(run.nodes[node].shell_argv()) for node, address in addresses.items()}


def _filled(command: Command, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": command.name,
        "role": command.role,
        "argv": [fill(word, values) for word in command.argv],
        "environment": {name: fill(value, values) for name, value in command.environment.items()},
        "log": fill(command.log, values),
    }
