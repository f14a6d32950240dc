"""Coordinate one run on any number of nodes: a node agent on each, and one coordinator connected to all node agents.

Launchers differ only in how a node is reached. All node agents prepare and report their nodes; the reports are
compared; then every node agent receives the commands to start. The first failure ends the run on all nodes.
"""

import os
import random
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dlperf_study.machines.cluster import Cluster, hardware
from dlperf_study.machines.node_agent import installed_packages, messages, run_folder
from dlperf_study.machines.node_agent.agents import Agents, NodeTimeout, RunFailed
from dlperf_study.machines.node_agent.submission import Execute, Node, Submission
from dlperf_study.machines.supervision.processes import new_mark
from dlperf_study.study import gpu_support, secrets
from dlperf_study.study.job import JobResult, RunStatus, TaskRole

#: Below the ports that systems use for outgoing connections.
PORTS = range(20_000, 32_768)
#: How many random ports of these each node tries; where a run needs more than half as many, twice what it needs.
CANDIDATES = 64


@dataclass
class ConductedRun:
    """The state of a run, with the reports of its nodes."""

    submission: Submission
    nodes: tuple[Node, ...]
    mark: str
    unrecorded: tuple[str, ...] = ()
    ready: dict[int, messages.Message] = field(default_factory=dict)
    started_nodes: set[int] = field(default_factory=set)
    start_time: float = field(default_factory=time.monotonic)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def node_titles(self, node_indices: Iterable[int]) -> str:
        """Return what messages call some nodes."""
        return ", ".join(self.nodes[index].title for index in node_indices)

    @property
    def addresses(self) -> dict[int, str]:
        """The address of each prepared node, by node index."""
        return {index: self.nodes[index].address or report["address"] for index, report in self.ready.items()}


def prepare_request(submission: Submission, unrecorded: Sequence[str]) -> dict[str, Any]:
    """Return the request to prepare; raises RunFailed without a variable."""
    given = submission.cluster.environment
    inherited = submission.job.variables.travelling(os.environ, submission.pass_environment)
    # The value of a variable of the cluster file that a record withholds is in the environment of this process.
    withheld = {name for name, value in given.items() if value == secrets.WITHHELD}
    if missing := sorted(withheld - os.environ.keys()):
        raise RunFailed(RunStatus.FAILED, f"{', '.join(missing)}: named in the cluster file, but not set here")
    environment = inherited | dict(given) | {name: os.environ[name] for name in withheld}
    ports = random.sample(PORTS, _candidates(submission)) if submission.job.ports else []
    return {"submission": submission.message(environment), "ports": ports, "unrecorded": unrecorded}


def _candidates(submission: Submission) -> int:
    return max(CANDIDATES, 2 * submission.job.ports)


def start_requests(run: ConductedRun) -> dict[int, dict[str, Any]]:
    """Return the request to start, by node index."""
    job, ssh_commands = run.submission.job, {}
    # The first node starts the ranks of the others, which it reaches by address.
    if job.starts_other_nodes and job.nodes > 1:
        ssh_commands = {address: list(run.nodes[index].shell_argv()) for index, address in run.addresses.items()}
    archive = run_folder.encoded(Path(job.archive)) if job.archive else ""
    common = {"values": _values(run), "ssh_commands": ssh_commands, "archive": archive}
    return {index: common | {"node": index} for index in run.ready}


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
    if len(free) < run.submission.job.ports:
        raise RunFailed(
            RunStatus.FAILED, f"only {len(free)} of {_candidates(run.submission)} ports tried are free on all nodes"
        )
    for port_index, port in zip(range(run.submission.job.ports), free, strict=False):
        values[f"port_{port_index}"] = str(port)
    return values


def node_facts(run: ConductedRun, node_index: int, final_report: messages.Message | None) -> dict[str, Any]:
    """Return the facts of a node for the run record."""
    report = run.ready[node_index]
    facts = {"node": node_index, "name": run.nodes[node_index].name}
    for name in ("address", "interface", "devices", "hardware", "software", "variables", "gpu_support"):
        if name != "gpu_support" or report[name]:
            facts[name] = report[name]
    busy = final_report["busy_cores"] if final_report else None
    return facts | {"load": report["load"] | {"busy_cores_during": busy}}


READY_REMEDY = "; raise start_up.ready_seconds in the cluster file"
#: How long node agents may take to end everything and to send what was written; and where nothing was started.
ENDING_SECONDS, GIVING_UP_SECONDS = 60.0, 10.0


def coordinate(
    submission: Submission, nodes: Sequence[Node], timeout_seconds: float, unrecorded: Sequence[str] = ()
) -> JobResult:
    """Run a submission on these nodes to its end."""
    # This creates the folder of the run, which has all evidence but the run record when this returns. An interrupt ends
    # the run; the result says so, and the caller raises once it is on disk. ``unrecorded`` are variables that only the
    # launcher's commands need: no record of a node has them.
    run_folder.begin(submission)
    run = ConductedRun(submission, tuple(nodes[: submission.job.nodes]), new_mark(), tuple(unrecorded))

    def note_waiting(node: str, busy_processes: str) -> None:
        limit = f"at most {submission.cluster.idle_wait_seconds:.0f} s"
        run_folder.write_waiting(
            submission, f"waits until {node or 'this machine'} is idle, {limit}; background load: {busy_processes}"
        )

    with Agents(run.mark, note_waiting) as agents:
        conclusion = _conduct(run, agents, timeout_seconds)
        reports = agents.end(ENDING_SECONDS if run.started_nodes else GIVING_UP_SECONDS)
    lost = sorted(run.started_nodes - reports.keys())
    # What is left on nodes that lost their node agent is ended by another node agent, if they can be reached.
    with Agents(run.mark) as agents, suppress(RunFailed):
        for index in lost:
            agents.open(index, run.nodes[index])
        agents.end(GIVING_UP_SECONDS)
    folder = Path(submission.folder)
    run_folder.keep_rank_output(folder, submission.job.rank_output)
    for report in reports.values():
        if report["files"]:
            run_folder.unpack(report["files"], folder)
    return _result(run, conclusion, reports, lost)


def in_turn(nodes: Callable[[Cluster], Sequence[Node]]) -> Execute:
    """Return an ``execute`` that runs submissions one after another."""

    def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
        for submission in submissions:
            yield coordinate(submission, nodes(cluster), timeout_seconds)

    return execute


@dataclass(frozen=True)
class _Conclusion:
    """Why the run is over, and where it failed."""

    status: RunStatus
    reason: str = ""
    node_index: int | None = None
    task: str = ""
    interrupted: bool = False


def _conduct(run: ConductedRun, agents: Agents, timeout_seconds: float) -> _Conclusion:
    """Prepare all nodes, start the commands, and wait."""
    try:
        _prepare(run, agents)
        requests = start_requests(run)
        run.start_time, run.started = time.monotonic(), datetime.now(UTC)
        for index, request in requests.items():
            run.started_nodes.add(index)
            agents.send(index, "start", **request)
        trainers = {command.node for command in run.submission.commands if command.role == TaskRole.TRAINER}
        agents.gather("done", trainers, timeout_seconds)
    except RunFailed as failure:
        return _Conclusion(failure.status, failure.reason, failure.node_index, failure.task)
    except NodeTimeout:
        return _Conclusion(RunStatus.TIMEOUT, f"not finished after {timeout_seconds:.0f} s")
    except KeyboardInterrupt:
        return _Conclusion(RunStatus.KILLED, "interrupted", interrupted=True)
    return _Conclusion(RunStatus.COMPLETED)


def _prepare(run: ConductedRun, agents: Agents) -> None:
    """Let every node prepare, and compare the nodes."""
    submission = run.submission
    if len(run.nodes) < submission.job.nodes:
        raise RunFailed(RunStatus.FAILED, f"needs {submission.job.nodes} nodes, but the cluster has {len(run.nodes)}")
    request = prepare_request(submission, run.unrecorded)
    for index, node in enumerate(run.nodes):
        agents.open(index, node)
        agents.send(index, "prepare", **request)
    seconds = submission.preparing_seconds
    try:
        run.ready = agents.gather("ready", range(len(run.nodes)), seconds)
    except NodeTimeout as timeout:
        titles = run.node_titles(timeout.node_indices)
        raise RunFailed(RunStatus.FAILED, f"{titles}: not ready within {seconds:g} s{READY_REMEDY}") from timeout
    reports = [run.ready[index] for index in sorted(run.ready)]
    if mismatch := installed_packages.version_mismatch(reports, [node.name for node in run.nodes], submission):
        raise RunFailed(RunStatus.FAILED, mismatch)
    for index, report in run.ready.items():
        for contradiction in hardware.link_contradictions(
            submission.cluster.interconnect, submission.job.nodes, report["hardware"]
        ):
            raise RunFailed(RunStatus.FAILED, f"{run.nodes[index].title}: {contradiction}")
    job, device_name = submission.job, submission.cluster.device_name
    if job.gpus_per_node and job.gpu_question:
        supports = {
            run.nodes[index].title: gpu_support.GpuSupport.of(report["gpu_support"])
            for index, report in run.ready.items()
        }
        for contradiction in job.gpu_question.contradictions(supports, job.gpus_per_node, device_name):
            raise RunFailed(RunStatus.FAILED, contradiction)


def _result(
    run: ConductedRun, conclusion: _Conclusion, reports: Mapping[int, messages.Message], lost: Sequence[int]
) -> JobResult:
    exit_codes: dict[str, int | None] = {}
    if run.started_nodes:
        exit_codes = {command.name: None for command in run.submission.commands}
    busy_cores = []
    for report in reports.values():
        exit_codes.update({name: code for name, code in report["exit_codes"].items() if name in exit_codes})
        if report["busy_cores"] is not None:
            busy_cores.append(report["busy_cores"])
    silent = run.node_titles(index for index in lost if index != conclusion.node_index)
    status, reason, task = conclusion.status, conclusion.reason, conclusion.task
    if silent:
        reason, task = "; ".join(filter(None, (reason, f"{silent} stopped answering"))), ""
        if status is RunStatus.COMPLETED:
            status = RunStatus.FAILED
    return JobResult(
        status,
        reason,
        seconds=time.monotonic() - run.start_time if run.started_nodes else None,
        exit_codes=exit_codes,
        busy_cores=max(busy_cores, default=None),
        out_of_memory_kills=sum(report["out_of_memory_kills"] for report in reports.values()),
        interrupted=conclusion.interrupted,
        started=run.started.isoformat(),
        nodes=tuple(node_facts(run, index, reports.get(index)) for index in sorted(run.ready)),
        failed_task=task,
    )
