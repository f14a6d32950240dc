"""Reads what a run left, as ``docs/evidence.md`` describes it: ``run.json`` and one log per rank."""

from dataclasses import dataclass, replace
from pathlib import Path

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.errors import EvidenceError, StudyFileError
from dlperf_study.evidence.json_fields import (
    Object,
    Types,
    need,
    need_not_negative,
    need_past_time,
    need_positive,
    object_of,
    text_of,
)
from dlperf_study.evidence.rank_agreement import disagreement
from dlperf_study.evidence.rank_log import (
    COMPUTATION,
    EXCHANGE,
    TRAINING,
    WARMUP,
    RankLog,
    Window,
    need_format,
    read_rank_log,
)
from dlperf_study.paths import RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome, TaskRole
from dlperf_study.wording import counted


@dataclass(frozen=True)
class Run:
    """One repetition. ``ranks`` is empty unless it completed and every rank's log is whole."""

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

    A run that says it completed but lacks a whole log of some rank is returned as failed, with that as reason.

    Raises:
        EvidenceError: ``run.json`` is missing, unreadable, or speaks of another run.

    """
    facts = _run_facts(paths.run_file)
    configuration = _configuration(facts, paths)
    identity = facts["configuration_identity"]
    outcome, reason = Outcome(facts["outcome"]), facts["reason"] or ""
    ranks: tuple[RankLog, ...] = ()
    if outcome is Outcome.COMPLETED:
        try:
            ranks = _agreeing_logs(paths, facts, configuration)
        except EvidenceError as error:
            outcome, reason = Outcome.FAILED, str(error)
    return Run(configuration, identity, facts["repetition"], outcome, reason, facts, ranks, _own_diagnostics(facts))


def _agreeing_logs(paths: RunPaths, facts: Object, configuration: Configuration) -> tuple[RankLog, ...]:
    """Return the logs of a run that completed; raises EvidenceError when they contradict its record or each other."""
    logs = rank_logs(paths, configuration)
    device, seconds = facts["cluster"]["device"], facts["seconds"]
    contradiction = _wrong_ranks(facts, configuration) or _wrong_exit(facts)
    if contradiction := contradiction or disagreement(logs, configuration, device, seconds):
        raise EvidenceError(f"{paths.folder}: {contradiction}")
    return logs


def _wrong_ranks(facts: Object, configuration: Configuration) -> str:
    """Return how the ranks that the run names are not those whose logs are there, or nothing."""
    expected, seen, ranks = facts["ranks_expected"], facts["ranks_seen"], list(range(configuration.world_size))
    if (expected, seen) == (len(ranks), ranks):
        return ""
    return f"expects {counted(expected, 'rank')} and saw {seen}, but has the logs of ranks {ranks}"


def _wrong_exit(facts: Object) -> str:
    """Return which trainer of a completed run did not end well, or nothing; servers are ended, not awaited."""
    trainers = {task: code for task, code in facts["exit_codes"].items() if not task.startswith(TaskRole.SERVER)}
    failed = [f"{task}: {code}" for task, code in trainers.items() if code != 0]
    return f"it says completed, but has exit codes of trainers other than 0 ({', '.join(failed)})" if failed else ""


def rank_logs(paths: RunPaths, configuration: Configuration) -> tuple[RankLog, ...]:
    """Return the logs of ranks 0 … world size − 1, each checked against what was asked.

    Raises:
        EvidenceError: one is missing, truncated, contradicts itself or is of another run.

    """
    logs = tuple(read_rank_log(paths.rank_log(rank)) for rank in range(configuration.world_size))
    run = f"{configuration.identity}/{paths.folder.name}"
    for rank, log in enumerate(logs):
        source = paths.rank_log(rank)
        if log.facts["run"] != run:
            raise EvidenceError(f"{source}: is the log of run {log.facts['run']}, not of {run}")
        _check_place(log, rank, configuration, str(source))
        _check_steps(log, configuration, str(source))
    if len({tuple(log.windows) for log in logs}) > 1:
        raise EvidenceError(f"{paths.folder}: the ranks measured different windows")
    if strangers := {*paths.folder.glob("rank-*.jsonl")} - {paths.rank_log(log.rank) for log in logs}:
        names = ", ".join(sorted(file.name for file in strangers))
        raise EvidenceError(f"{paths.folder}: {names} is of no rank; asked were {configuration.world_size}")
    return logs


def _check_place(log: RankLog, rank: int, configuration: Configuration, source: str) -> None:
    size = configuration.world_size
    if (log.rank, log.facts["world_size"]) != (rank, size):
        found = f"rank {log.rank} of {log.facts['world_size']}"
        raise EvidenceError(f"{source}: is the log of {found}; asked was {rank} of {size}")
    place = divmod(rank, configuration.devices_per_node)
    if (log.facts["node"], log.facts["local_rank"]) != place:
        found = f"local rank {log.facts['local_rank']} of node {log.facts['node']}"
        raise EvidenceError(f"{source}: is {found}; rank {rank} is local rank {place[1]} of node {place[0]}")


def _check_steps(log: RankLog, configuration: Configuration, source: str) -> None:
    asked = {
        WARMUP: configuration.warmup_steps,
        TRAINING: configuration.measured_steps,
        COMPUTATION: configuration.computation_steps,
        EXCHANGE: configuration.exchange_steps,
    }
    for name, window in log.windows.items():
        if window.steps != asked.get(name):
            raise EvidenceError(f"{source}: window {name} has {window.steps} steps; asked was {asked.get(name)}")


_LOAD_KEYS: dict[str, Types] = {
    "waited_seconds": (int, float, type(None)),
    "busy_cores_during": (int, float, type(None)),
}
_RUN_KEYS: dict[str, Types] = {
    "format": int,
    "configuration": dict,
    "configuration_identity": str,
    "repetition": int,
    "fingerprint": str,
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


def _run_facts(path: Path) -> Object:
    facts = object_of(text_of(path), str(path))
    if "complaints" in facts:  # the key of the diagnostics in older records of this format
        facts = {**facts, "diagnostics": facts["complaints"]}
    need(facts, str(path), **_RUN_KEYS)
    need_format(facts, str(path))
    if facts["outcome"] not in list(Outcome):
        raise EvidenceError(f"{path}: outcome is {facts['outcome']!r}; the outcomes are {', '.join(Outcome)}")
    if facts["started"] is not None or facts["outcome"] == Outcome.COMPLETED:
        need(facts, str(path), started=str)
        need_past_time(facts, str(path), "started")
    need_not_negative(facts, str(path), "seconds")
    need(facts["load"], f"{path}: load", **_LOAD_KEYS)
    need_not_negative(facts["load"], f"{path}: load", *_LOAD_KEYS)
    need(facts["cluster"], f"{path}: cluster", device=str, device_peak_flops=(int, float, type(None)))
    need_positive(facts["cluster"], f"{path}: cluster", "device_peak_flops")
    for section in facts["environment"].values():
        if not isinstance(section, dict):
            raise EvidenceError(f"{path}: environment holds {section!r}, which is not an object")
    for diagnostic in facts["diagnostics"]:
        need(diagnostic, f"{path}: diagnostics", subject=str, message=str)
    return facts


def _configuration(facts: Object, paths: RunPaths) -> Configuration:
    """Return the configuration, which must be the one whose folder this is."""
    here = paths.folder.parents[1].name, paths.folder.name
    try:
        configuration = Configuration.from_mapping(facts["configuration"], f"{paths.run_file}: configuration")
    except StudyFileError as error:
        raise EvidenceError(str(error)) from error
    said = facts["configuration_identity"], str(facts["repetition"])
    if said != here:
        place = f"run {said[1]} of {said[0]}, in the folder of run {here[1]} of {here[0]}"
        raise EvidenceError(f"{paths.run_file}: is {place}")
    if configuration.identity != said[0]:
        raise EvidenceError(f"{paths.run_file}: is of {said[0]}, but its parameters make it {configuration.identity}")
    return configuration


def _own_diagnostics(facts: Object) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(diagnostic["subject"], diagnostic["message"]) for diagnostic in facts["diagnostics"])


# No process measures two runs: a repetition whose log was written by a process of another run is its copy.


class Originals:
    """The processes of the runs seen so far."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int, int], Run] = {}

    def checked(self, run: Run) -> Run:
        """Return a run, as failed when it is a copy of an earlier one; so copies are not counted."""
        copied = next((log for log in run.ranks if log.process in self._runs), None)
        if copied:
            return replace(run, outcome=Outcome.FAILED, reason=self._reason(copied), ranks=())
        self._runs |= {log.process: run for log in run.ranks}
        return run

    def _reason(self, log: RankLog) -> str:
        host, pid, _ = log.process
        other = self._runs[log.process]
        said = f"rank {log.rank} is the same process (pid {pid} on {host}, begun in the same nanosecond)"
        return f"its {said} as in run {other.repetition} of {other.identity}: a copy is no repetition"
