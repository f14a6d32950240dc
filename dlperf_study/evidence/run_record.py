"""The record of one run, ``run.json``: built from how the processes ended and what the ranks wrote."""

import json
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.environment_variables import passed_environment, without_secrets
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.environment import environment, load, unlike_nodes
from dlperf_study.evidence.rank_agreement import disagreement
from dlperf_study.evidence.rank_log import FORMAT, RankLog, read_rank_log
from dlperf_study.evidence.run import rank_logs, read_run
from dlperf_study.paths import RunPaths, write_atomically
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, Outcome
from dlperf_study.supervision.processes import PASSED_ON_SIGNALS

# Is there room for evidence?


#: Logs and evidence of one run are far smaller; less than this is a disk about to be full.
FREE_BYTES = 20_000_000


def shortage(folder: Path) -> str:
    """Return in words that too little is free on the disk of ``folder``, which may not exist yet, or nothing."""
    existing = next(one for one in (folder, *folder.resolve().parents) if one.exists())
    free = shutil.disk_usage(existing).free
    if free >= FREE_BYTES:
        return ""
    return f"{folder}: only {free / 1e6:.0f} MB free on this disk; a run needs {FREE_BYTES / 1e6:.0f}"


# Why a task failed, in its own words: the last exception in what it printed.


MOST_CHARACTERS = 200
#: An exception stands near the end of a log, above what libraries print on their way out.
LAST_LINES = 200
#: What Paddle calls an error in a rank that its launcher ends because another has failed.
ENDED_BY_OTHERS = "FatalError: `Termination signal`"
#: As Python ends a traceback, perhaps behind the mark that horovodrun gives every line of a rank.
_EXCEPTION = re.compile(r"(?:\[\d+\]<\w+>:)?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?)")
_NO_MODULE = re.compile(r".*: (No module named .*)")


def with_last_words(result: JobResult, paths: RunPaths) -> JobResult:
    """Return the ending of a run; one that says only which task failed says also what that task died of."""
    words = _last_words(result, paths) if result.outcome is Outcome.FAILED else ""
    return replace(result, reason=f"{result.reason}: {words}") if words else result


def _last_words(result: JobResult, paths: RunPaths) -> str:
    """Return the last exception of the task that ended the run, unless its exit code says already what it died of."""
    code = result.exit_codes.get(result.failed_task)
    if not code or _explains(code):
        return ""
    return next(filter(None, map(_exception_in, _logs(result.failed_task, paths))), "")


def _explains(code: int) -> bool:
    """Return whether a signal ended the task: what others died of then is only that.

    SIGTERM that is passed on explains nothing: with that a launcher ends its ranks when one of them has failed.
    """
    return code < 0 or PASSED_ON_SIGNALS.get(code, "SIGTERM") != "SIGTERM"


def _logs(task: str, paths: RunPaths) -> Iterator[Path]:
    """Yield what a task and its ranks printed.

    First the ranks, the one that fell silent first before all others: the others died of its death, and who started
    them says no more than that they died.
    """
    logs = paths.process_logs
    ranks = (log for log in logs if log.stem.startswith(("rank-", f"{task}-rank-")))
    yield from sorted(ranks, key=lambda log: log.stat().st_mtime)
    yield from (log for log in logs if log.stem == task)


def _exception_in(log: Path) -> str:
    """Return the last line of a log that names an exception of its own, cut to what a message can hold; or nothing."""
    for line in reversed(log.read_text(errors="replace").splitlines()[-LAST_LINES:]):
        if ENDED_BY_OTHERS in line:
            return ""
        if found := _EXCEPTION.fullmatch(line.rstrip()) or _NO_MODULE.fullmatch(line.rstrip()):
            return found[1][:MOST_CHARACTERS]
    return ""


TAIL_LINES = 20
#: What a reader of numbers must know of a cluster file; the rest says how to reach it, or is nobody's business.
CLUSTER_FACTS = (
    *("name", "launcher", "nodes", "devices_per_node", "device", "device_name", "device_peak_flops"),
    *("link", "network_interface"),
)
_OUT_OF_MEMORY = re.compile(r"out of memory|ResourceExhausted|Cannot allocate memory|MemoryError", re.IGNORECASE)


@dataclass(frozen=True)
class Circumstances:
    """What is known of a run before it starts."""

    configuration: Configuration
    repetition: int
    fingerprint: str
    cluster: Cluster


def record(circumstances: Circumstances, result: JobResult, paths: RunPaths) -> dict[str, Any]:
    """Return ``run.json``: a run counts as completed only if every rank's log is whole and the ranks agree."""
    seen, contradiction = _check(circumstances, paths, result.seconds)
    outcome, reason = _outcome(with_last_words(result, paths), contradiction, paths)
    hidden = _variables(circumstances.cluster)
    facts = {
        "format": FORMAT,
        "configuration": circumstances.configuration.as_dict(),
        "configuration_identity": circumstances.configuration.identity,
        "repetition": circumstances.repetition,
        "fingerprint": circumstances.fingerprint,
        "outcome": outcome,
        "reason": without_secrets(reason, hidden),
        "started": result.started or None,
        "seconds": result.seconds,
        "exit_codes": result.exit_codes,
        "ranks_expected": circumstances.configuration.world_size,
        "ranks_seen": seen,
        "cluster": _cluster_facts(circumstances.cluster),
        "environment": environment(result.nodes),
        "nodes": list(result.nodes),
        "load": load(result.nodes, result.busy_cores),
        "diagnostics": unlike_nodes(result.nodes),
    }
    if outcome is Outcome.COMPLETED:
        return facts
    shown = {task: [without_secrets(line, hidden) for line in lines] for task, lines in tails(paths).items()}
    return facts | {"tail": shown}


def write(facts: dict[str, Any], paths: RunPaths) -> None:
    """Write ``run.json`` in one piece, behind everything else the run wrote."""
    write_atomically(paths.run_file, json.dumps(facts, indent=1) + "\n")


def read(paths: RunPaths) -> dict[str, Any] | None:
    """Return a run's record, or None when there is none that can be trusted to be whole."""
    try:
        facts = json.loads(paths.run_file.read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def is_completed(paths: RunPaths, fingerprint: str) -> bool:
    """Return whether this run will be counted, and was measured with this configuration by this very code."""
    try:
        run = read_run(paths)
    except EvidenceError:
        return False
    return run.completed and bool(run.facts["fingerprint"] == fingerprint)


def tails(paths: RunPaths) -> dict[str, list[str]]:
    """Return the last lines of every log of the run, by task."""
    return {log.stem: _tail(log) for log in paths.process_logs}


def _check(circumstances: Circumstances, paths: RunPaths, seconds: float | None) -> tuple[list[int], str]:
    """Return the ranks whose log is whole, and what is wrong with the evidence (empty: nothing)."""
    configuration = circumstances.configuration
    seen = [rank for rank in range(configuration.world_size) if _is_whole(paths.rank_log(rank))]
    try:
        logs = rank_logs(paths, configuration)
    except EvidenceError as error:
        return seen, str(error)
    return seen, _contradiction(logs, circumstances, seconds)


def _is_whole(log: Path) -> bool:
    try:
        read_rank_log(log)
    except EvidenceError:
        return False
    return True


def _contradiction(logs: Sequence[RankLog], circumstances: Circumstances, seconds: float | None) -> str:
    """Return what is wrong with logs that are whole, or nothing."""
    if not all(math.isfinite(loss) for log in logs for window in log.windows.values() for loss in window.losses):
        return "a loss is not finite: batch normalisation over few values does that; more images or larger ones help"
    return disagreement(logs, circumstances.configuration, circumstances.cluster.device, seconds)


def _outcome(result: JobResult, contradiction: str, paths: RunPaths) -> tuple[Outcome, str]:
    if result.outcome is Outcome.FAILED and (result.out_of_memory_kills or _ran_out_of_memory(paths)):
        return Outcome.OUT_OF_MEMORY, result.reason
    if result.outcome is Outcome.COMPLETED and contradiction:
        return Outcome.FAILED, contradiction
    if result.outcome is Outcome.FAILED and (lack := shortage(paths.folder)):
        return Outcome.FAILED, f"{result.reason}; {lack}"
    return result.outcome, result.reason


def _ran_out_of_memory(paths: RunPaths) -> bool:
    return any(_OUT_OF_MEMORY.search("\n".join(lines)) for lines in tails(paths).values())


def _variables(cluster: Cluster) -> dict[str, str]:
    """Return what training processes were given that may be secret, as far as it is known here."""
    return passed_environment(further=cluster.pass_environment) | dict(cluster.environment)


def _cluster_facts(cluster: Cluster) -> dict[str, Any]:
    return {name: getattr(cluster, name) for name in CLUSTER_FACTS}


def _tail(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
