"""One run, read from its evidence as ``docs/evidence.md`` describes it: ``run.json`` and one log per rank."""

from dataclasses import dataclass, replace
from pathlib import Path

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.errors import EvidenceError, StudyFileError
from dlperf_study.evidence.json_fields import (
    Object,
    Types,
    check_not_negative,
    check_past_time,
    check_positive,
    check_types,
    object_of,
    text_of,
)
from dlperf_study.evidence.rank_agreement import disagreement, rank_logs
from dlperf_study.evidence.rank_log import RankLog, Window, check_format
from dlperf_study.paths import RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome, TaskRole
from dlperf_study.study.turn import BY_HAND, ORDERS, ROUNDS
from dlperf_study.wording import counted


@dataclass(frozen=True)
class Run:
    """One repetition. ``ranks`` is empty unless it completed and every rank's log is complete."""

    configuration: Configuration
    identity: str
    repetition: int
    outcome: Outcome
    reason: str
    facts: Object
    ranks: tuple[RankLog, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def completed(self) -> bool:
        """Whether it may be counted."""
        return self.outcome is Outcome.COMPLETED

    def windows(self, name: str) -> list[Window]:
        """Return the window of that name of every rank that has it, in order of rank."""
        return [log.windows[name] for log in self.ranks if name in log.windows]

    def slowest(self, name: str) -> Window | None:
        """Return the longest window of that name among the ranks, or None where there is none."""
        return max(self.windows(name), key=lambda window: window.seconds, default=None)


def read_run(paths: RunPaths) -> Run:
    """Read one repetition.

    A run whose record says that it completed, but whose rank logs are incomplete or contradict it, is returned as
    failed, with that as reason.

    Raises:
        EvidenceError: ``run.json`` is missing, unreadable, or belongs to a different run.

    """
    facts = run_facts(paths.run_file)
    configuration = _configuration(facts, paths)
    outcome, reason = Outcome(facts["outcome"]), facts["reason"] or ""
    ranks: tuple[RankLog, ...] = ()
    if outcome is Outcome.COMPLETED:
        try:
            ranks = _consistent_logs(paths, facts, configuration)
        except EvidenceError as error:
            outcome, reason = Outcome.FAILED, str(error)
    diagnostics = tuple(Diagnostic(diagnostic["subject"], diagnostic["message"]) for diagnostic in facts["diagnostics"])
    identity, repetition = facts["configuration_identity"], facts["repetition"]
    return Run(configuration, identity, repetition, outcome, reason, facts, ranks, diagnostics)


def _consistent_logs(paths: RunPaths, facts: Object, configuration: Configuration) -> tuple[RankLog, ...]:
    """Return the logs of a run that completed; raises EvidenceError when they contradict its record or each other."""
    logs = rank_logs(paths, configuration)
    expected, logged, ranks = facts["ranks_expected"], facts["ranks_seen"], list(range(configuration.world_size))
    device, seconds, code = facts["cluster"]["device"], facts["seconds"], facts["code"]
    failed_trainers: list[str] = []
    for task, exit_code in facts["exit_codes"].items():
        # Servers are ended, not awaited.
        if exit_code != 0 and not task.startswith(TaskRole.SERVER):
            failed_trainers.append(f"{task}: {exit_code}")
    if (expected, logged) != (len(ranks), ranks):
        problem = f"expects {counted(expected, 'rank')} and saw {logged}, but has the logs of ranks {ranks}"
    elif failed_trainers:
        problem = f"it says completed, but has exit codes of trainers other than 0 ({', '.join(failed_trainers)})"
    else:
        problem = disagreement(logs, configuration, device, seconds, code)
    if problem:
        raise EvidenceError(f"{paths.folder}: {problem}")
    return logs


def _configuration(facts: Object, paths: RunPaths) -> Configuration:
    """Return the configuration, which must be the one whose folder this is."""
    try:
        configuration = Configuration.from_mapping(facts["configuration"], f"{paths.run_file}: configuration")
    except StudyFileError as error:
        raise EvidenceError(str(error)) from error
    identity, repetition = facts["configuration_identity"], str(facts["repetition"])
    folder_identity, folder_repetition = paths.folder.parents[1].name, paths.folder.name
    if (identity, repetition) != (folder_identity, folder_repetition):
        folder = f"the folder of run {folder_repetition} of {folder_identity}"
        raise EvidenceError(f"{paths.run_file}: is run {repetition} of {identity}, in {folder}")
    if configuration.identity != identity:
        raise EvidenceError(f"{paths.run_file}: is of {identity}, but its parameters make it {configuration.identity}")
    return configuration


_LOAD_KEYS: dict[str, Types] = {
    "waited_seconds": (int, float, type(None)),
    "busy_cores_during": (int, float, type(None)),
}
_RUN_KEYS: dict[str, Types] = {
    "configuration": dict,
    "configuration_identity": str,
    "repetition": int,
    "order": str,
    "round": (int, type(None)),
    "position": (int, type(None)),
    "fingerprint": str,
    "code": str,
    "outcome": str,
    "reason": (str, type(None)),
    "started": (str, type(None)),
    "seconds": (int, float, type(None)),
    "exit_codes": dict,
    "ranks_expected": int,
    "ranks_seen": list,
    "cluster": dict,
    "environment": dict,
    "load": dict,
    "diagnostics": list,
}


def run_facts(path: Path) -> Object:
    """Return the record of a run; raises EvidenceError where it is missing or not as ``docs/evidence.md`` says."""
    facts = object_of(text_of(path), str(path))
    check_format(facts, str(path))
    check_types(facts, str(path), **_RUN_KEYS)
    if facts["outcome"] not in list(Outcome):
        raise EvidenceError(f"{path}: outcome is {facts['outcome']!r}; the outcomes are {', '.join(Outcome)}")
    _check_turn(facts, path)
    if facts["started"] is not None or facts["outcome"] == Outcome.COMPLETED:
        check_types(facts, str(path), started=str)
        check_past_time(facts, str(path), "started")
    check_not_negative(facts, str(path), "seconds")
    check_types(facts["load"], f"{path}: load", **_LOAD_KEYS)
    check_not_negative(facts["load"], f"{path}: load", *_LOAD_KEYS)
    check_types(facts["cluster"], f"{path}: cluster", device=str, device_peak_flops=(int, float, type(None)))
    check_positive(facts["cluster"], f"{path}: cluster", "device_peak_flops")
    for section in facts["environment"].values():
        if not isinstance(section, dict):
            raise EvidenceError(f"{path}: environment holds {section!r}, which is not an object")
    for diagnostic in facts["diagnostics"]:
        check_types(diagnostic, f"{path}: diagnostics", subject=str, message=str)
    return facts


def _check_turn(facts: Object, path: Path) -> None:
    """Refuse an unknown order, and a place in a round without the other half of it or outside of rounds."""
    order, turn = facts["order"], {name: facts[name] for name in ("round", "position")}
    if order not in (*ORDERS, BY_HAND):
        raise EvidenceError(f"{path}: order is {order!r}; the orders are {', '.join((*ORDERS, BY_HAND))}")
    given = [value for value in turn.values() if value is not None]
    if given and (order != ROUNDS or len(given) < len(turn)):
        raise EvidenceError(f"{path}: order is {order!r}, but round is {turn['round']} and position {turn['position']}")
    check_positive(turn, str(path), *turn)


class DuplicateRuns:
    """Finds runs whose logs were copied: no process measures two runs."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int, int], Run] = {}

    def checked(self, run: Run) -> Run:
        """Return the run, or, if a process of an earlier run wrote one of its logs, the run as failed."""
        for log in run.ranks:
            if earlier := self._runs.get(log.process):
                host, pid, _ = log.process
                process = f"rank {log.rank} is the same process (pid {pid} on {host}, begun in the same nanosecond)"
                reason = f"its {process} as in run {earlier.repetition} of {earlier.identity}: a copy is no repetition"
                return replace(run, outcome=Outcome.FAILED, reason=reason, ranks=())
        for log in run.ranks:
            self._runs[log.process] = run
        return run
