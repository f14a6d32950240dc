"""Reads what a run left, as ``docs/evidence.md`` describes it: ``run.json`` and one log per rank."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dlperf_study.errors import EvidenceError, StudyFileError
from dlperf_study.logs.complaint import Complaint
from dlperf_study.logs.fields import (
    Object,
    Types,
    need,
    need_not_negative,
    need_past_time,
    need_positive,
    object_of,
    text_of,
)
from dlperf_study.paths import RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Role
from dlperf_study.study.outcome import Outcome

FORMAT = 1
TRAINING, COMPUTATION, EXCHANGE, WARMUP = "training", "computation", "exchange", "warmup"
#: By how much the steps of a window may outlast it: the clocks of a device and of its host differ a little.
CLOCK_TOLERANCE = 0.01

Real = NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """Measured steps of one kind. ``step_seconds`` has one value per step; ``losses`` too, or none."""

    name: str
    seconds: float
    step_seconds: Real
    losses: Real
    bytes: int | None

    @property
    def steps(self) -> int:
        """How many steps it holds."""
        return self.step_seconds.size

    @property
    def mean_seconds(self) -> float:
        """Seconds of the window / its steps."""
        return self.seconds / self.steps


@dataclass(frozen=True)
class RankLog:
    """The whole log of one rank; ``facts`` is its ``rank`` line, ``end`` its last."""

    rank: int
    facts: Object
    windows: Mapping[str, Window]
    end: Object


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
    complaints: tuple[Complaint, ...]

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
    return Run(configuration, identity, facts["repetition"], outcome, reason, facts, ranks, _own_complaints(facts))


def disagreement(logs: Sequence[RankLog], device: str) -> str:
    """Return how the ranks of one run contradict the cluster or each other, or nothing."""
    return next(_disagreements(logs, device), "")


def _disagreements(logs: Sequence[RankLog], device: str) -> Iterator[str]:
    found = {log.facts["device"] for log in logs}
    if found != {device}:
        yield f"the ranks trained on {', '.join(sorted(found))}, but the cluster file says {device}"
    for node, hosts in sorted(_hosts_of_nodes(logs).items()):
        if len(hosts) > 1:
            yield f"the ranks of node {node} ran on {', '.join(sorted(hosts))}: a node is one host"
    for name in ("exchange", "gradient_bytes"):
        if len({log.facts[name] for log in logs}) > 1:
            yield f"the ranks say different things of {name}: they did not train the same"
    if any(log.end["initial_checksum"] == log.end["parameter_checksum"] for log in logs):
        yield "the parameters did not change: nothing was trained"
    if len({log.end["parameter_checksum"] for log in logs}) > 1:
        yield "the ranks ended with different parameters: their gradients were not exchanged"


def _hosts_of_nodes(logs: Sequence[RankLog]) -> Mapping[int, set[str]]:
    hosts = defaultdict[int, set[str]](set)
    for log in logs:
        hosts[log.facts["node"]].add(log.facts["host"])
    return hosts


def _agreeing_logs(paths: RunPaths, facts: Object, configuration: Configuration) -> tuple[RankLog, ...]:
    """Return the logs of a run that completed; raises EvidenceError when they contradict its record or each other."""
    logs = _rank_logs(paths, configuration)
    doubt = _wrong_ranks(facts, configuration) or _wrong_exit(facts) or disagreement(logs, facts["cluster"]["device"])
    if doubt:
        raise EvidenceError(f"{paths.folder}: {doubt}")
    return logs


def _wrong_ranks(facts: Object, configuration: Configuration) -> str:
    """Return how the ranks that the run names are not those whose logs are there, or nothing."""
    expected, seen, ranks = facts["ranks_expected"], facts["ranks_seen"], list(range(configuration.world_size))
    if (expected, seen) == (len(ranks), ranks):
        return ""
    return f"expects {expected} ranks and saw {seen}, but has the logs of ranks {ranks}"


def _wrong_exit(facts: Object) -> str:
    """Return which trainer of a completed run did not end well, or nothing; servers are ended, not awaited."""
    trainers = {task: code for task, code in facts["exit_codes"].items() if not task.startswith(Role.SERVER)}
    failed = [f"{task}: {code}" for task, code in trainers.items() if code != 0]
    return f"it says completed, but has exit codes of trainers other than 0 ({', '.join(failed)})" if failed else ""


def read_rank_log(path: Path) -> RankLog:
    """Read the log of one rank.

    Raises:
        EvidenceError: the log is missing, truncated, or contradicts itself.

    """
    lines = [object_of(text, f"{path}: line {number}") for number, text in enumerate(text_of(path).splitlines(), 1)]
    kinds = [line.get("kind") for line in lines]
    if kinds[-1:] != ["end"]:
        raise EvidenceError(f"{path}: truncated, it has no end line")
    if kinds[:1] != ["rank"] or set(kinds[1:-1]) - {"window"}:
        raise EvidenceError(f"{path}: its lines are {', '.join(map(str, kinds))}, not rank, window, …, end")
    return _rank_log(lines, str(path))


def _rank_log(lines: list[Object], source: str) -> RankLog:
    facts, *middle, end = lines
    need(facts, source, **_RANK_KEYS)
    _need_format(facts, source)
    need(end, source, **_END_KEYS)
    need_positive(facts, source, "flops_per_sample", "parameters")
    need_not_negative(facts, source, "gradient_bytes")
    need_not_negative(end, source, "drain_seconds")
    if end["windows"] != len(middle):
        raise EvidenceError(f"{source}: truncated, it has {len(middle)} of {end['windows']} windows")
    windows = {window.name: window for window in (_window(line, source) for line in middle)}
    if len(windows) < len(middle) or TRAINING not in windows:
        raise EvidenceError(f"{source}: needs one {TRAINING} window and no window twice, has {', '.join(windows)}")
    exchanged = windows.get(EXCHANGE)
    if exchanged and not 0 < facts["gradient_bytes"] == exchanged.bytes:
        said = f"{exchanged.bytes} bytes, but the gradients have {facts['gradient_bytes']}"
        raise EvidenceError(f"{source}: window {EXCHANGE} exchanged {said}")
    return RankLog(facts["rank"], facts, windows, end)


def _window(line: Object, source: str) -> Window:
    need(line, source, name=str, steps=int, seconds=(int, float), step_seconds=list, losses=list)
    try:
        steps = np.asarray(line["step_seconds"], dtype=np.float64)
        losses = np.asarray(line["losses"], dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise EvidenceError(f"{source}: window {line['name']}: {error}") from error
    window = Window(line["name"], float(line["seconds"]), steps, losses, line.get("bytes"))
    _check_window(window, line["steps"], source)
    return window


def _check_window(window: Window, steps: int, source: str) -> None:
    if window.step_seconds.shape != (steps,) or window.losses.shape not in ((steps,), (0,)):
        raise EvidenceError(f"{source}: window {window.name} does not hold one time and one loss for each step")
    if not steps and window.name != WARMUP:
        raise EvidenceError(f"{source}: window {window.name} has no step")
    if not (window.step_seconds > 0).all():
        raise EvidenceError(f"{source}: window {window.name} has a step time that is not above 0")
    whole = float(window.step_seconds.sum())
    if not abs(whole - window.seconds) <= window.seconds * CLOCK_TOLERANCE or not math.isfinite(window.seconds):
        raise EvidenceError(f"{source}: window {window.name} lasts {window.seconds} s but its steps {whole} s")


def _rank_logs(paths: RunPaths, configuration: Configuration) -> tuple[RankLog, ...]:
    """Return the logs of ranks 0 … world size − 1, each checked against what was asked."""
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


_RANK_KEYS: dict[str, Types] = {
    "format": int,
    "run": str,
    "rank": int,
    "world_size": int,
    "node": int,
    "local_rank": int,
    "host": str,
    "device": str,
    "library": str,
    "library_version": str,
    "parameters": int,
    "gradient_bytes": int,
    "flops_per_sample": (int, float, type(None)),
    "exchange": str,
}
_END_KEYS: dict[str, Types] = {
    "windows": int,
    "parameter_checksum": str,
    "initial_checksum": str,
    "drain_seconds": (int, float),
}
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
    "started": str,
    "seconds": (int, float, type(None)),
    "exit_codes": dict,
    "ranks_expected": int,
    "ranks_seen": list,
    "cluster": dict,
    "environment": dict,
    "load": dict,
    "complaints": list,
}


def _run_facts(path: Path) -> Object:
    facts = object_of(text_of(path), str(path))
    need(facts, str(path), **_RUN_KEYS)
    _need_format(facts, str(path))
    if facts["outcome"] not in list(Outcome):
        raise EvidenceError(f"{path}: outcome is {facts['outcome']!r}; the outcomes are {', '.join(Outcome)}")
    need_past_time(facts, str(path), "started")
    need_not_negative(facts, str(path), "seconds")
    need(facts["load"], f"{path}: load", **_LOAD_KEYS)
    need_not_negative(facts["load"], f"{path}: load", *_LOAD_KEYS)
    need(facts["cluster"], f"{path}: cluster", device=str, device_peak_flops=(int, float, type(None)))
    need_positive(facts["cluster"], f"{path}: cluster", "device_peak_flops")
    for section in facts["environment"].values():
        if not isinstance(section, dict):
            raise EvidenceError(f"{path}: environment holds {section!r}, which is not an object")
    for complaint in facts["complaints"]:
        need(complaint, f"{path}: complaints", subject=str, message=str)
    return facts


def _need_format(facts: Object, source: str) -> None:
    if facts["format"] != FORMAT:
        raise EvidenceError(f"{source}: format is {facts['format']}; this program reads format {FORMAT}")


def _configuration(facts: Object, paths: RunPaths) -> Configuration:
    """Return the configuration, which must be the one whose folder this is."""
    here = paths.folder.parents[1].name, paths.folder.name
    try:
        configuration = Configuration.from_mapping(facts["configuration"], f"{paths.run_file}: configuration")
    except StudyFileError as error:
        raise EvidenceError(str(error)) from error
    said = facts["configuration_identity"], str(facts["repetition"])
    if said != here or configuration.identity != here[0]:
        raise EvidenceError(
            f"{paths.run_file}: is run {said[1]} of {said[0]}, in the folder of run {here[1]} of {here[0]}"
        )
    return configuration


def _own_complaints(facts: Object) -> tuple[Complaint, ...]:
    return tuple(Complaint(complaint["subject"], complaint["message"]) for complaint in facts["complaints"])
