"""One run on any number of nodes: a guard on each, and one coordinator that all guards listen to.

Only the way to reach a node differs between launchers. All guards get ready and say what they found; what they
will run is compared; then all are told what to start. The first bad news ends the run everywhere.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.guards import Guards, NodeTimeout, RunFailed
from dlperf_study.guard.installed_packages import version_mismatch
from dlperf_study.guard.messages import Message
from dlperf_study.guard.requests import ConductedRun, node_facts, prepare_request, start_requests
from dlperf_study.guard.run_folder import begin, keep_rank_output, unpack
from dlperf_study.guard.submission import Execute, Node, Submission
from dlperf_study.study.job import JobResult, Outcome, TaskRole
from dlperf_study.supervision.processes import new_mark

#: How long a node may take to answer, besides waiting until it is idle.
READY_SECONDS = 90.0
#: How long guards may take to end everything and to hand over what was written; and where nothing was.
ENDING_SECONDS, GIVING_UP_SECONDS = 60.0, 10.0


def coordinate(submission: Submission, nodes: Sequence[Node], timeout_seconds: float) -> JobResult:
    """Run a submission on the first of these nodes to its end; no process of it is left anywhere.

    The folder of the run is made here, and holds all evidence but the record when this returns. An interrupt ends
    the run; the ending says so, and the caller raises once it is on disk.
    """
    begin(submission)
    run = ConductedRun(submission, tuple(nodes[: submission.nodes]), new_mark())
    with Guards(run.mark) as guards:
        verdict = _verdict(run, guards, timeout_seconds)
        results = guards.end(ENDING_SECONDS if run.ordered else GIVING_UP_SECONDS)
    lost = sorted(run.ordered - results.keys())
    _sweep(run, lost)
    _bring_home(submission, results)
    return _ending(run, verdict, results, lost)


def in_turn(nodes: Callable[[Cluster], Sequence[Node]]) -> Execute:
    """Return what runs submissions one after another on the nodes of a cluster; it leaves no process on any."""

    def execute(submissions: Sequence[Submission], cluster: Cluster, timeout_seconds: float) -> Generator[JobResult]:
        for submission in submissions:
            yield coordinate(submission, nodes(cluster), timeout_seconds)

    return execute


@dataclass(frozen=True)
class _Verdict:
    outcome: Outcome
    reason: str
    node: int | None = None
    task: str = ""
    interrupted: bool = False


def _verdict(run: ConductedRun, guards: Guards, timeout_seconds: float) -> _Verdict:
    """Conduct the run until it is known how it ended."""
    try:
        _prepare(run, guards)
        _start(run, guards)
        trainers = {command.node for command in run.submission.commands if command.role == TaskRole.TRAINER}
        guards.gather("done", trainers, timeout_seconds)
    except RunFailed as news:
        return _Verdict(news.outcome, news.reason, news.node, news.task)
    except NodeTimeout:
        return _Verdict(Outcome.TIMEOUT, f"not finished after {timeout_seconds:.0f} s")
    except KeyboardInterrupt:
        return _Verdict(Outcome.KILLED, "interrupted", interrupted=True)
    return _Verdict(Outcome.COMPLETED, "")


def _prepare(run: ConductedRun, guards: Guards) -> None:
    """Let every node get ready, and see that all will run the same."""
    submission = run.submission
    if len(run.nodes) < submission.nodes:
        raise RunFailed(Outcome.FAILED, f"needs {submission.nodes} nodes, but there are only {len(run.nodes)}")
    asked = prepare_request(submission)
    for node, place in enumerate(run.nodes):
        guards.open(node, place)
        guards.say(node, "prepare", **asked)
    patience = READY_SECONDS + submission.idle_wait_seconds
    try:
        run.ready = guards.gather("ready", range(len(run.nodes)), patience)
    except NodeTimeout as late:
        slow = ", ".join(run.nodes[node].title for node in late.nodes)
        raise RunFailed(Outcome.FAILED, f"{slow}: not ready within {patience:.0f} s") from late
    said = [run.ready[node] for node in sorted(run.ready)]
    if words := version_mismatch(said, [place.name for place in run.nodes], submission.python):
        raise RunFailed(Outcome.FAILED, words)


def _start(run: ConductedRun, guards: Guards) -> None:
    """Tell every node what to start."""
    orders = start_requests(run)
    run.began, run.started = time.monotonic(), datetime.now(UTC)
    for node, order in orders.items():
        run.ordered.add(node)
        guards.say(node, "start", **order)


def _sweep(run: ConductedRun, lost: Sequence[int]) -> None:
    """End what is left on nodes whose guard has gone before its time, where they can be reached."""
    with Guards(run.mark) as guards:
        try:
            for node in lost:
                guards.open(node, run.nodes[node])
        except RunFailed:
            return
        guards.end(GIVING_UP_SECONDS)


def _bring_home(submission: Submission, results: Mapping[int, Message]) -> None:
    """Gather what the nodes wrote in the folder of the run."""
    folder = Path(submission.folder)
    keep_rank_output(folder, submission.rank_output)
    for result in results.values():
        if result["files"]:
            unpack(result["files"], folder)


def _ending(run: ConductedRun, verdict: _Verdict, results: Mapping[int, Message], lost: Sequence[int]) -> JobResult:
    names = [command.name for command in run.submission.commands] if run.ordered else []
    codes = {name: code for result in results.values() for name, code in result["exit_codes"].items()}
    busy = [result["busy_cores"] for result in results.values() if result["busy_cores"] is not None]
    silent = ", ".join(run.nodes[node].title for node in lost if node != verdict.node)
    return JobResult(
        verdict.outcome,
        verdict.reason + (f"; {silent} did not answer any more" if silent else ""),
        seconds=time.monotonic() - run.began if run.ordered else None,
        exit_codes={name: codes.get(name) for name in names},
        busy_cores=max(busy, default=None),
        out_of_memory_kills=sum(result["out_of_memory_kills"] for result in results.values()),
        interrupted=verdict.interrupted,
        started=run.started.isoformat(),
        nodes=tuple(node_facts(run, node, results.get(node)) for node in sorted(run.ready)),
        failed_task="" if silent else verdict.task,
    )
