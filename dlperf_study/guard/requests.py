"""The requests that a coordinator sends to the guards of one run, and what the guards reported of their nodes."""

import os
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from dlperf_study.cluster.environment_variables import WITHHELD, travelling_environment
from dlperf_study.guard.guards import RunFailed
from dlperf_study.guard.messages import Message
from dlperf_study.guard.submission import Command, Node, Submission, fill
from dlperf_study.study.job import Outcome

#: Below the ports that systems use for outgoing connections.
PORTS = range(20_000, 32_768)
#: How many random ports of these each node tries.
CANDIDATES = 64


@dataclass
class ConductedRun:
    """The state of a run; ``ready`` has the report of each prepared node, by node index."""

    submission: Submission
    nodes: tuple[Node, ...]
    mark: str
    unrecorded: tuple[str, ...] = ()
    ready: dict[int, Message] = field(default_factory=dict)
    started_nodes: set[int] = field(default_factory=set)
    start_time: float = field(default_factory=time.monotonic)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def titles_of(self, node_indices: Iterable[int]) -> str:
        """Return what messages call some nodes."""
        return ", ".join(self.nodes[index].title for index in node_indices)

    def commands_on(self, node_index: int) -> list[Command]:
        """Return the commands of one node."""
        return [command for command in self.submission.commands if command.node == node_index]

    @property
    def addresses(self) -> dict[int, str]:
        """The address of each prepared node, by node index."""
        return {index: self.nodes[index].address or report["address"] for index, report in self.ready.items()}


def prepare_request(submission: Submission, unrecorded: Sequence[str]) -> dict[str, Any]:
    """Return the request to prepare, the same for all nodes; raises RunFailed where a variable was not passed on."""
    environment = travelling_environment(os.environ, submission.pass_environment) | dict(submission.environment)
    # The value of a variable of the cluster file that a record withholds is in the environment of this process.
    withheld = {name for name, value in submission.environment.items() if value == WITHHELD}
    if missing := sorted(withheld - os.environ.keys()):
        raise RunFailed(Outcome.FAILED, f"{', '.join(missing)}: given in the cluster file, but not passed on to here")
    environment |= {name: os.environ[name] for name in withheld}
    return {
        "idle_max_busy_cores": submission.idle_max_busy_cores,
        "idle_wait_seconds": submission.idle_wait_seconds,
        "network_interface": submission.network_interface,
        "has_peers": submission.nodes > 1,
        "framework": submission.framework,
        "gpus_per_node": submission.gpus_per_node,
        "ports": random.sample(PORTS, CANDIDATES) if submission.ports else [],
        "python": submission.python,
        "image_set": dict(submission.image_set),
        "pass_environment": submission.pass_environment,
        "unrecorded": unrecorded,
        "environment": environment,
    }


def start_requests(run: ConductedRun) -> dict[int, dict[str, Any]]:
    """Return the request to start for each node index; raises RunFailed where too few ports are free on all nodes."""
    values = _values(run)
    ssh_commands: dict[str, list[str]] = {}
    # The first node starts the ranks of the others, which it reaches by address.
    if run.submission.starts_other_nodes and run.submission.nodes > 1:
        ssh_commands = {address: list(run.nodes[index].shell_argv()) for index, address in run.addresses.items()}
    common = {
        "folder": fill(run.submission.folder_there, values),
        "node_folder": fill(run.submission.node_folder, values),
        "files": dict(run.submission.files),
        "rank_output": run.submission.rank_output,
        "ssh_commands": ssh_commands,
    }
    requests = {}
    for index in run.ready:
        commands = [asdict(command.filled(values)) for command in run.commands_on(index)]
        requests[index] = common | {"node": index, "commands": commands}
    return requests


def _values(run: ConductedRun) -> dict[str, str]:
    """Return the values of ``{host_N}``, ``{interface_N}``, ``{devices_N}``, ``{port_N}`` and ``{unique}``."""
    values = {"unique": run.mark.partition("@")[0]}
    for index, report in run.ready.items():
        values[f"host_{index}"] = run.addresses[index]
        values[f"interface_{index}"] = report["interface"]
        values[f"devices_{index}"] = report["devices"]
    free_everywhere = set.intersection(*(set(report["ports"]) for report in run.ready.values()))
    # In their random order: the lowest of many are those that a run starting at the same time is likely to take too.
    candidates = next(iter(run.ready.values()))["ports"]
    free = list(filter(free_everywhere.__contains__, candidates))
    if len(free) < run.submission.ports:
        raise RunFailed(Outcome.FAILED, f"only {len(free)} of {CANDIDATES} ports tried are free on all nodes")
    for port_index, port in zip(range(run.submission.ports), free, strict=False):
        values[f"port_{port_index}"] = str(port)
    return values


def node_facts(run: ConductedRun, node_index: int, final_report: Message | None) -> dict[str, Any]:
    """Return the facts of a node for the run record: its first report, and the load by others during the run."""
    report = run.ready[node_index]
    during = {"busy_cores_during": final_report["busy_cores"] if final_report else None}
    facts = {name: report[name] for name in ("address", "interface", "devices", "hardware", "software", "variables")}
    support = {"gpu_support": report["gpu_support"]} if report["gpu_support"] else {}
    return {"node": node_index, "name": run.nodes[node_index].name, **facts, **support, "load": report["load"] | during}
