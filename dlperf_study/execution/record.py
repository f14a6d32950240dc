"""The record of one run, ``run.json``: built from how the processes ended and what the ranks wrote."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dlperf_study.errors import EvidenceError
from dlperf_study.execution.disk import shortage
from dlperf_study.execution.environment import environment
from dlperf_study.execution.gate import Load
from dlperf_study.launchers.base import Ending
from dlperf_study.logs.evidence import FORMAT, RankLog, disagreement, read_rank_log, read_run
from dlperf_study.paths import RunPaths, write_atomically
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.outcome import Outcome

TAIL_LINES = 20
_OUT_OF_MEMORY = re.compile(r"out of memory|ResourceExhausted|Cannot allocate memory|MemoryError", re.IGNORECASE)


@dataclass(frozen=True)
class Circumstances:
    """What is known of a run before it starts."""

    configuration: Configuration
    repetition: int
    fingerprint: str
    cluster: Cluster
    started: str


def record(circumstances: Circumstances, load: Load, ending: Ending, paths: RunPaths) -> dict[str, Any]:
    """Return ``run.json``: a run counts as completed only if every rank's log is whole and the ranks agree."""
    seen, doubt = _check(circumstances, paths)
    outcome, reason = _outcome(ending, doubt, paths)
    facts = {
        "format": FORMAT,
        "configuration": circumstances.configuration.as_dict(),
        "configuration_identity": circumstances.configuration.identity,
        "repetition": circumstances.repetition,
        "fingerprint": circumstances.fingerprint,
        "outcome": outcome,
        "reason": reason,
        "started": circumstances.started,
        "seconds": ending.seconds,
        "exit_codes": ending.exit_codes,
        "ranks_expected": circumstances.configuration.world_size,
        "ranks_seen": seen,
        "cluster": _cluster_facts(circumstances.cluster),
        "environment": environment(),
        "load": asdict(load) | {"busy_cores_during": ending.busy_cores},
        "complaints": [],
    }
    return facts if outcome is Outcome.COMPLETED else facts | {"tail": tails(paths)}


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


def _check(circumstances: Circumstances, paths: RunPaths) -> tuple[list[int], str]:
    """Return the ranks whose log is whole, and what is wrong with the evidence (empty: nothing)."""
    logs: list[RankLog] = []
    for rank in range(circumstances.configuration.world_size):
        try:
            logs.append(read_rank_log(paths.rank_log(rank)))
        except EvidenceError as error:
            return [log.rank for log in logs], str(error)
    return [log.rank for log in logs], _doubt(logs, circumstances.cluster.device)


def _doubt(logs: Sequence[RankLog], device: str) -> str:
    """Return what is wrong with logs that are whole, or nothing."""
    if not all(math.isfinite(loss) for log in logs for window in log.windows.values() for loss in window.losses):
        return "a loss is not finite"
    return disagreement(logs, device)


def _outcome(ending: Ending, doubt: str, paths: RunPaths) -> tuple[Outcome, str]:
    if ending.outcome is Outcome.FAILED and (ending.out_of_memory_kills or _ran_out_of_memory(paths)):
        return Outcome.OUT_OF_MEMORY, ending.reason
    if ending.outcome is Outcome.COMPLETED and doubt:
        return Outcome.FAILED, doubt
    if ending.outcome is Outcome.FAILED and (lack := shortage(paths.folder)):
        return Outcome.FAILED, f"{ending.reason}; {lack}"
    return ending.outcome, ending.reason


def _ran_out_of_memory(paths: RunPaths) -> bool:
    return any(_OUT_OF_MEMORY.search("\n".join(lines)) for lines in tails(paths).values())


def _cluster_facts(cluster: Cluster) -> dict[str, Any]:
    facts = asdict(cluster)
    return {k: facts[k] for k in facts if k not in ("python", "idle_max_busy_cores", "idle_wait_seconds")}


def _tail(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
