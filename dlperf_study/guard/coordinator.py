"""Coordinate one run on any number of nodes: a guard on each, and one coordinator connected to all guards.

Launchers differ only in how a node is reached. All guards prepare and report their nodes; the reports are compared;
then every guard receives the commands to start. The first failure ends the run on all nodes.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.gpu_support import gpu_contradictions, support_of
from dlperf_study.cluster.link import link_contradictions
from dlperf_study.guard.guards import Guards, NodeTimeout, RunFailed
from dlperf_study.guard.installed_packages import version_mismatch
from dlperf_study.guard.messages import Message
from dlperf_study.guard.requests import ConductedRun, node_facts, prepare_request, start_requests
from dlperf_study.guard.run_folder import begin, keep_rank_output, unpack, write_waiting
from dlperf_study.guard.submission import Execute, Node, Submission
from dlperf_study.study.job import JobResult, Outcome, TaskRole
from dlperf_study.supervision.processes import new_mark

READY_REMEDY = "; start_up.ready_seconds of the cluster file allows more"
#: How long guards may take to end everything and to send what was written; and where nothing was started.
ENDING_SECONDS, GIVING_UP_SECONDS = 60.0, 10.0


def coordinate(
    submission: Submission, nodes: Sequence[Node], timeout_seconds: float, unrecorded: Sequence[str] = ()
) -> JobResult:
    """Run a submission on the first of these nodes to its end; no process of it is left on any node.

    This creates the folder of the run, which has all evidence but the run record when this returns. An interrupt ends
    the run; the result says so, and the caller raises once it is on disk. ``unrecorded`` are variables that only the
    launcher's commands need: no record of a node has them.
    """
    begin(submission)
    run = ConductedRun(submission, tuple(nodes[: submission.nodes]), new_mark(), tuple(unrecorded))

    def note_waiting(node: str, busy_processes: str) -> None:
        limit = f"at most {submission.idle_wait_seconds:.0f} s"
        write_waiting(submission, f"waits until {node or 'this machine'} is quiet, {limit}; busy: {busy_processes}")

    with Guards(run.mark, note_waiting) as guards:
        conclusion = _conduct(run, guards, timeout_seconds)
        reports = guards.end(ENDING_SECONDS if run.started_nodes else GIVING_UP_SECONDS)
    lost = sorted(run.started_nodes - reports.keys())
    # What is left on nodes that lost their guard is ended by another guard, if they can be reached.
    with Guards(run.mark) as guards, suppress(RunFailed):
        for index in lost:
            guards.open(index, run.nodes[index])
        guards.end(GIVING_UP_SECONDS)
    folder = Path(submission.folder)
    keep_rank_output(folder, submission.rank_output)
    for report in reports.values():
        if report["files"]:
            unpack(report["files"], folder)
    return _result(run, conclusion, reports, lost)


def in_turn(nodes: Callable[[Cluster], Sequence[Node]]) -> Execute:
    """Return an ``execute`` that runs submissions one after another on the nodes of a cluster."""

    def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
        for submission in submissions:
            yield coordinate(submission, nodes(cluster), timeout_seconds)

    return execute


@dataclass(frozen=True)
class _Conclusion:
    """Why the run is over: the outcome, its reason, and the node and the task with which a failure began."""

    outcome: Outcome
    reason: str = ""
    node_index: int | None = None
    task: str = ""
    interrupted: bool = False


def _conduct(run: ConductedRun, guards: Guards, timeout_seconds: float) -> _Conclusion:
    """Prepare all nodes, start the commands, and wait until the trainers are done."""
    try:
        _prepare(run, guards)
        requests = start_requests(run)
        run.start_time, run.started = time.monotonic(), datetime.now(UTC)
        for index, request in requests.items():
            run.started_nodes.add(index)
            guards.send(index, "start", **request)
        trainers = {command.node for command in run.submission.commands if command.role == TaskRole.TRAINER}
        guards.gather("done", trainers, timeout_seconds)
    except RunFailed as failure:
        return _Conclusion(failure.outcome, failure.reason, failure.node_index, failure.task)
    except NodeTimeout:
        return _Conclusion(Outcome.TIMEOUT, f"not finished after {timeout_seconds:.0f} s")
    except KeyboardInterrupt:
        return _Conclusion(Outcome.KILLED, "interrupted", interrupted=True)
    return _Conclusion(Outcome.COMPLETED)


def _prepare(run: ConductedRun, guards: Guards) -> None:
    """Let every node prepare, and check that all nodes will run the same."""
    submission = run.submission
    if len(run.nodes) < submission.nodes:
        raise RunFailed(Outcome.FAILED, f"needs {submission.nodes} nodes, but there are only {len(run.nodes)}")
    request = prepare_request(submission, run.unrecorded)
    for index, node in enumerate(run.nodes):
        guards.open(index, node)
        guards.send(index, "prepare", **request)
    seconds = submission.preparing_seconds
    try:
        run.ready = guards.gather("ready", range(len(run.nodes)), seconds)
    except NodeTimeout as timeout:
        titles = run.titles_of(timeout.node_indices)
        raise RunFailed(Outcome.FAILED, f"{titles}: not ready within {seconds:g} s{READY_REMEDY}") from timeout
    reports = [run.ready[index] for index in sorted(run.ready)]
    if mismatch := version_mismatch(reports, [node.name for node in run.nodes], submission.python):
        raise RunFailed(Outcome.FAILED, mismatch)
    if contradiction := next(_contradictions(run), ""):
        raise RunFailed(Outcome.FAILED, contradiction)


def _contradictions(run: ConductedRun) -> Iterator[str]:
    """Yield what the nodes measured of themselves and the cluster file says otherwise."""
    submission = run.submission
    for index, report in run.ready.items():
        for contradiction in link_contradictions(submission.link, submission.nodes, report["hardware"]):
            yield f"{run.nodes[index].title}: {contradiction}"
    if submission.gpus_per_node and submission.framework:
        supports = {run.nodes[index].title: support_of(report["gpu_support"]) for index, report in run.ready.items()}
        wanted, device_name = submission.gpus_per_node, submission.device_name
        yield from gpu_contradictions(submission.framework, supports, wanted, device_name)


def _result(
    run: ConductedRun, conclusion: _Conclusion, reports: Mapping[int, Message], lost: Sequence[int]
) -> JobResult:
    exit_codes: dict[str, int | None] = {}
    if run.started_nodes:
        exit_codes = {command.name: None for command in run.submission.commands}
    busy_cores = []
    for report in reports.values():
        exit_codes.update({name: code for name, code in report["exit_codes"].items() if name in exit_codes})
        if report["busy_cores"] is not None:
            busy_cores.append(report["busy_cores"])
    silent = run.titles_of(index for index in lost if index != conclusion.node_index)
    return JobResult(
        conclusion.outcome,
        conclusion.reason + (f"; {silent} did not answer any more" if silent else ""),
        seconds=time.monotonic() - run.start_time if run.started_nodes else None,
        exit_codes=exit_codes,
        busy_cores=max(busy_cores, default=None),
        out_of_memory_kills=sum(report["out_of_memory_kills"] for report in reports.values()),
        interrupted=conclusion.interrupted,
        started=run.started.isoformat(),
        nodes=tuple(node_facts(run, index, reports.get(index)) for index in sorted(run.ready)),
        failed_task="" if silent else conclusion.task,
    )
