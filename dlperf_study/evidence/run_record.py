"""The record of one run, ``run.json``: built from how the processes ended and what the ranks logged."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.environment_variables import passed_environment, without_secrets
from dlperf_study.cluster.hardware import command_output
from dlperf_study.cluster.software import measuring_code
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.failure_reason import explained, last_log_lines
from dlperf_study.evidence.rank_agreement import complete_logs, contradiction
from dlperf_study.evidence.rank_log import RankLog
from dlperf_study.evidence.rank_log_writer import FORMAT
from dlperf_study.evidence.records import RunRecord
from dlperf_study.evidence.run import different_nodes, run_facts, run_of
from dlperf_study.paths import PROJECT, RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, Outcome
from dlperf_study.study.turn import Turn
from dlperf_study.writing import write_atomically

#: What a reader of numbers must know of a cluster file; the rest is about how to reach the cluster.
CLUSTER_FACTS = (
    *("name", "launcher", "nodes", "devices_per_node", "device", "device_name", "device_peak_flops"),
    *("link", "network_interface"),
)

NodeFacts = Mapping[str, Any]


@dataclass(frozen=True)
class RequestedRun:
    """One run that a study requests, and where its evidence goes.

    ``fingerprint`` is a digest of everything besides the machine that its numbers depend on. ``variables`` are added to
    the environment of its processes: they make an unmeasured run of a measured one, for which ``purpose`` is the name.
    ``turn``: when it is measured.
    """

    configuration: Configuration
    repetition: int
    fingerprint: str
    paths: RunPaths
    variables: Mapping[str, str] = field(default_factory=dict)
    purpose: str = ""
    turn: Turn = field(default_factory=Turn)

    @property
    def is_measured(self) -> bool:
        """Whether it is a repetition that counts."""
        return not self.purpose

    def state(self) -> "RunState":
        """Read its record, if there is one that is valid and has this fingerprint."""
        try:
            facts = run_facts(self.paths.run_file)
        except EvidenceError:
            return RunState(self)
        return RunState(self, facts if facts["fingerprint"] == self.fingerprint else None)


@dataclass(frozen=True)
class RunState:
    """A requested run and its record, as it was when it was read; None where there is none that counts."""

    run: RequestedRun
    facts: RunRecord | None = None

    @cached_property
    def is_completed(self) -> bool:
        """Whether the evidence of the run is complete; reads its rank logs."""
        try:
            return self.facts is not None and run_of(self.facts, self.run.paths).completed
        except EvidenceError:
            return False

    @property
    def out_of_memory_reason(self) -> str:
        """Why the run found too little memory; empty where it did not."""
        return self.facts["reason"] if self.facts and self.facts["outcome"] is Outcome.OUT_OF_MEMORY else ""


def record(requested: RequestedRun, cluster: Cluster, result: JobResult) -> dict[str, Any]:
    """Return ``run.json``: a run is completed only if every rank's log is complete and the ranks agree.

    Each rank log is parsed once.
    """
    configuration, paths = requested.configuration, requested.paths
    logs, problem = complete_logs(paths, configuration.world_size)
    tails = last_log_lines(paths)
    facts = _facts(requested, cluster, result, logs)
    if result.outcome is not Outcome.COMPLETED:
        result = explained(result, paths)
    elif reason := problem or _future_start(result) or contradiction(logs, facts, configuration, paths):
        result = replace(result, outcome=Outcome.FAILED, reason=reason)
    secrets = passed_environment(further=cluster.pass_environment) | dict(cluster.environment)
    facts |= {"outcome": result.outcome, "reason": without_secrets(result.reason, secrets)}
    if result.outcome is not Outcome.COMPLETED:
        facts["tail"] = {}
        for task, lines in tails.items():
            facts["tail"][task] = [without_secrets(line, secrets) for line in lines]
    return facts


def _future_start(result: JobResult) -> str:
    """Return why the start of a run can't be right, or nothing: the first node recorded it by its own clock."""
    if result.started and datetime.fromisoformat(result.started) > datetime.now(UTC):
        return f"it started at {result.started}, which is in the future here: set the clock of its first node"
    return ""


def _facts(requested: RequestedRun, cluster: Cluster, result: JobResult, logs: Sequence[RankLog]) -> dict[str, Any]:
    """Return what ``run.json`` says of a run whose processes ended like this and left these complete logs."""
    return {
        "format": FORMAT,
        "configuration": requested.configuration.as_dict(),
        "configuration_identity": requested.configuration.identity,
        "repetition": requested.repetition,
        **asdict(requested.turn),
        "fingerprint": requested.fingerprint,
        "code": measuring_code(),
        "outcome": result.outcome,
        "reason": result.reason,
        "started": None if _future_start(result) else result.started or None,
        "seconds": result.seconds,
        "exit_codes": result.exit_codes,
        "ranks_expected": requested.configuration.world_size,
        "ranks_seen": [log.rank for log in logs],
        "cluster": {name: getattr(cluster, name) for name in CLUSTER_FACTS} | measured_device_name(result.nodes),
        **_node_facts(result.nodes, result.busy_cores),
    }


def measured_device_name(nodes: Sequence[NodeFacts]) -> dict[str, str]:
    """Return ``device_name`` as the devices of the first node call themselves; nothing where no node reported."""
    for node in nodes[:1]:
        if support := node.get("gpu_support"):
            return {"device_name": ", ".join(dict.fromkeys(support["gpus"]))}
        if name := node["hardware"].get("cpu_model"):
            return {"device_name": name}
    return {}


def write(facts: dict[str, Any], paths: RunPaths) -> None:
    """Write ``run.json`` in one piece, after everything else that the run wrote."""
    write_atomically(paths.run_file, json.dumps(facts, indent=1) + "\n")


def read(paths: RunPaths) -> dict[str, Any] | None:
    """Return a run's record, or None if there is none that is complete and valid."""
    try:
        return {**run_facts(paths.run_file)}
    except EvidenceError:
        return None


def _node_facts(nodes: Sequence[NodeFacts], busy_cores: float | None) -> dict[str, Any]:
    """Return what ``run.json`` says about the nodes, and about what other processes did on them."""
    first = nodes[0] if nodes else {}
    environment = {name: dict(first.get(name, {})) for name in ("hardware", "software", "variables")}
    loads = [node["load"] for node in nodes]
    survivors: list[str] = []
    for node in nodes:
        prefix = f"{node['name']}: " if node["name"] else ""
        survivors += [prefix + survivor for survivor in node["load"]["survivors_ended"]]
    return {
        "environment": environment | {"git": git()},
        "nodes": list(nodes),
        "load": {
            "waited_seconds": max((load["waited_seconds"] for load in loads), default=None),
            "busy_cores_before": max((load["busy_cores_before"] for load in loads), default=None),
            "survivors_ended": survivors,
            "busy_cores_during": busy_cores,
        },
        "diagnostics": [{"subject": "nodes", "message": message} for message in different_nodes(nodes)],
    }


def git() -> dict[str, Any]:
    """Return the commit of the checkout, and whether it has files that are changed or new; empty outside of one.

    New files count, for they may be the study and the cluster; files that git ignores do not.
    """
    status = ("status", "--porcelain=v2", "--branch", "--untracked-files=normal")
    output = command_output("git", "-C", str(PROJECT), *status)
    commit = re.search(r"^# branch\.oid ([0-9a-f]+)$", output, re.MULTILINE)
    if not commit:
        return {}
    return {"commit": commit[1], "dirty": any(not line.startswith("#") for line in output.splitlines())}
