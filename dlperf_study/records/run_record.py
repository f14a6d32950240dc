"""The record of one run, ``run.json``: built from how the processes ended and what the ranks logged."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dlperf_study.core import code_identity, wording, writing
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import RunPaths
from dlperf_study.records import failure_reason, lines, run, run_file
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import COMMON_VARIABLES, PassedVariables
from dlperf_study.study.job import JobResult, RunStatus, Turn

if TYPE_CHECKING:
    from dlperf_study.records.rank_log import RankLog

#: How a fingerprint is made. 1 (or nothing): its code is a digest of all benchmark code. 2: of what the run imports, or
#: the name of earlier code that measures alike. 3: Python and packages are versions instead of the path of the Python.
CACHE_KEY_DEFINITION = 3

NodeFacts = Mapping[str, Any]


@dataclass(frozen=True)
class RequestedRun:
    """One run that a study requests, and where its evidence goes.

    ``cache_key`` is a digest of everything besides the machine that its numbers depend on: the configuration and
    ``parts``. ``code`` is the benchmark code in detail. ``variables`` are added to the environment of its processes:
    they make an unmeasured run of a measured one, for which ``purpose`` is the name. ``turn``: when it is measured.
    """

    configuration: Configuration
    repetition: int
    cache_key: str
    paths: RunPaths
    code: code_identity.MeasuringCode = field(default_factory=code_identity.MeasuringCode)
    variables: Mapping[str, str] = field(default_factory=dict)
    purpose: str = ""
    turn: Turn = field(default_factory=Turn)
    parts: run_file.CacheKeyParts = field(default_factory=run_file.CacheKeyParts)

    @property
    def is_measured(self) -> bool:
        """Whether it is a repetition that counts."""
        return not self.purpose

    def state(self) -> "RunState":
        """Read its record, if it is valid and has this fingerprint."""
        try:
            facts = run.run_facts(self.paths.run_file)
        except RecordError:
            return RunState(self)
        if facts["cache_key"] != self.cache_key:
            return RunState(self)
        return RunState(self, facts)


@dataclass(frozen=True)
class RunState:
    """A requested run and its record, or None."""

    run: RequestedRun
    facts: run_file.RunRecord | None = None

    @cached_property
    def is_completed(self) -> bool:
        """Whether the evidence of the run is complete; reads its rank logs."""
        try:
            return self.facts is not None and run.assemble_run(self.facts, self.run.paths).completed
        except RecordError:
            return False

    @property
    def out_of_memory_reason(self) -> str:
        """Why the run found too little memory; empty where it did not."""
        if self.facts and self.facts["status"] is RunStatus.OUT_OF_MEMORY:
            return self.facts["reason"]
        return ""


@dataclass(frozen=True)
class ControllerFacts:
    """What the controller of a run knows besides.

    ``passed``: the variables that processes of the run had from it or from the cluster file, of which the values may be
    secrets; ``variables`` says which are none. ``program``: the record of the user's program that trained.
    ``flops_per_sample``: forward and backward, by the formula of the model; None where that is unknown.
    """

    cluster: run_file.ClusterFacts
    git: run_file.GitFacts
    passed: Mapping[str, str] = field(default_factory=dict)
    variables: PassedVariables = COMMON_VARIABLES
    program: Mapping[str, Any] | None = None
    flops_per_sample: float | None = None

    def redacted(self, text: str) -> str:
        """Return a text without the values of variables that may be secrets."""
        return self.variables.redacted(text, self.passed)


def record(requested: RequestedRun, result: JobResult, controller: ControllerFacts) -> dict[str, Any]:
    """Return ``run.json``; a run is completed only if all ranks agree.

    Each rank log is parsed once.
    """
    from dlperf_study.records import rank_agreement

    configuration, paths = requested.configuration, requested.paths
    logs, problem = rank_agreement.complete_logs(paths, configuration.world_size)
    if controller.program:
        for log in paths.process_logs:
            controller.variables.redact_file(log, controller.passed)
    tails = failure_reason.last_log_lines(paths)
    facts = _facts(requested, result, controller, logs)
    if result.status is not RunStatus.COMPLETED:
        result = failure_reason.explained(result, paths)
    elif (
        reason := _problem_of_logs(requested, logs, problem, controller)
        or _future_start(result)
        or rank_agreement.contradiction(logs, facts, configuration, paths)
    ):
        result = replace(result, status=RunStatus.FAILED, reason=reason)
    facts |= {"status": result.status, "reason": controller.redacted(result.reason)}
    if result.status is not RunStatus.COMPLETED:
        facts["tail"] = {}
        for task, tail in tails.items():
            facts["tail"][task] = [controller.redacted(line) for line in tail]
    return facts


def _problem_of_logs(
    requested: RequestedRun, logs: "Sequence[RankLog]", problem: str, controller: ControllerFacts
) -> str:
    size, paths = requested.configuration.world_size, requested.paths
    silent = []
    for rank in range(size):
        if not paths.rank_log(rank).exists():
            silent.append(f"rank {rank}")
    if not (problem and silent and controller.program):
        return problem
    if logs and logs[0].facts["world_size"] != size:
        started = wording.counted(logs[0].facts["world_size"], "rank")
        return f"{paths.folder}: the program had {started}, but {size} were requested; its command must start them"
    if len(silent) < size:
        return f"{paths.folder}: no steps were recorded by {', '.join(silent)} of {size}"
    remedy = "call Recorder.step in the program, or let program.steps be the format of its log"
    return f"{paths.folder}: no rank recorded a step; {remedy}"


def _future_start(result: JobResult) -> str:
    if result.started and datetime.fromisoformat(result.started) > datetime.now(UTC):
        return f"it started at {result.started}, which is in the future here: set the clock of its first node"
    return ""


def _facts(
    requested: RequestedRun, result: JobResult, controller: ControllerFacts, logs: "Sequence[RankLog]"
) -> dict[str, Any]:
    return {
        "format": lines.FORMAT,
        "configuration": requested.configuration.as_dict(),
        "configuration_id": requested.configuration.configuration_id,
        "repetition": requested.repetition,
        **asdict(requested.turn),
        "cache_key": requested.cache_key,
        "cache_key_definition": CACHE_KEY_DEFINITION,
        "cache_key_parts": requested.parts,
        "code": requested.code.digest,
        "code_modules": requested.code.modules,
        "worker_code": requested.code.worker,
        "status": result.status,
        "reason": result.reason,
        "started": None if _future_start(result) else result.started or None,
        "seconds": result.seconds,
        "exit_codes": result.exit_codes,
        "ranks_expected": requested.configuration.world_size,
        "ranks_seen": [log.rank for log in logs],
        "cluster": {**controller.cluster, **measured_device_name(result.nodes)},
        **_node_facts(result.nodes, result.busy_cores, controller.git),
        **({"program": controller.program} if controller.program else {}),
        **({"flops_per_sample": controller.flops_per_sample} if controller.flops_per_sample else {}),
    }


def measured_device_name(nodes: Sequence[NodeFacts]) -> dict[str, str]:
    """Return the names of the devices on the first node."""
    for node in nodes[:1]:
        if support := node.get("gpu_support"):
            return {"device_name": ", ".join(dict.fromkeys(support["gpus"]))}
        if name := node["hardware"].get("cpu_model"):
            return {"device_name": name}
    return {}


def write(facts: dict[str, Any], paths: RunPaths) -> None:
    """Write ``run.json`` last, with digests of the other files.

    What is no character, as in the name of a process or a folder, becomes a question mark: no reader of JSON takes it.
    """
    readable = json.loads(json.dumps(facts, ensure_ascii=False).encode(errors="replace"))
    writing.write_atomically(paths.run_file, json.dumps(run_file.add_digests(readable, paths), indent=1) + "\n")


def read(paths: RunPaths) -> dict[str, Any] | None:
    """Return a run's record, or None without a valid one."""
    try:
        return {**run.run_facts(paths.run_file)}
    except RecordError:
        return None


def is_completed(facts: Mapping[str, Any] | None) -> bool:
    """Return whether there is a record of a run, and it completed."""
    return facts is not None and facts["status"] == RunStatus.COMPLETED


def _node_facts(nodes: Sequence[NodeFacts], busy_cores: float | None, git: run_file.GitFacts) -> dict[str, Any]:
    first = nodes[0] if nodes else {}
    environment = {name: dict(first.get(name, {})) for name in ("hardware", "software", "variables")}
    loads, orphans = [], []
    for node in nodes:
        loads.append(node["load"])
        prefix = f"{node['name']}: " if node["name"] else ""
        for orphan in node["load"]["orphans_ended"]:
            orphans.append(prefix + orphan)
    return {
        "environment": environment | {"git": git},
        "nodes": list(nodes),
        "load": {
            "waited_seconds": max((load["waited_seconds"] for load in loads), default=None),
            "busy_cores_before": max((load["busy_cores_before"] for load in loads), default=None),
            "orphans_ended": orphans,
            "busy_cores_during": busy_cores,
        },
        "diagnostics": [{"subject": "nodes", "message": message} for message in run.different_nodes(nodes)],
    }
