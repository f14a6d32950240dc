"""Whether the record of a completed run fits how its processes ended, its nodes and its ranks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.paths import RunPaths
from dlperf_study.core.wording import counted
from dlperf_study.evidence.lines import TRAINING
from dlperf_study.evidence.rank_log import RankLog
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import PRODUCER, TaskRole
from dlperf_study.study.validation import object_of, text_of

#: The names of tasks that are one rank each.
_TASK_OF_RANK = re.compile(r"(?:rank|trainer)-(\d+)")
#: What a version ends with that names its build: 2.13.0+cpu, 2.4.2.post112.
_BUILD = re.compile(r"\+.*|\.post\d+$")
#: By how much the clocks of two machines may differ.
CLOCKS_APART = timedelta(minutes=1)
#: What no processor does, by device: FLOP/s of a core, and of a GPU, in any number format.
LARGEST_FLOPS = {"cpu": 1e13, "gpu": 5e16}


def check_record(
    logs: Sequence[RankLog], facts: Mapping[str, Any], configuration: Configuration, paths: RunPaths
) -> None:
    """Raise EvidenceError where the record of a completed run contradicts itself, its files or the logs of its ranks.

    ``logs`` are those of all ranks, in order of rank; ``facts`` is the record.
    """
    contradictions = chain(
        _contradictory_outcome(facts, paths),
        _contradictory_ranks(logs, facts),
        _contradictory_exit_codes(facts),
        _contradictory_time(facts),
        _contradictory_request(facts, paths),
        _contradictory_nodes(logs, facts),
        _impossible_work(logs, facts, configuration),
    )
    for message in contradictions:
        raise EvidenceError(f"{paths.folder}: {message}")


def _contradictory_outcome(facts: Mapping[str, Any], paths: RunPaths) -> Iterator[str]:
    if facts["reason"]:
        yield f"outcome is completed in run.json, but reason is {facts['reason']!r}"
    # A round measures the repetition of its own number, once; beside it may be runs that are not measured.
    is_measured = paths.folder.parents[1] == paths.home.folder
    if is_measured and facts["round"] not in (None, facts["repetition"]):
        own_round = facts["repetition"]
        yield f"round is {facts['round']} in run.json, but round {own_round} measures repetition {own_round}"


def _contradictory_ranks(logs: Sequence[RankLog], facts: Mapping[str, Any]) -> Iterator[str]:
    expected, logged, ranks = facts["ranks_expected"], facts["ranks_seen"], list(range(len(logs)))
    is_of_job = len(logs) == 1 and logs[0].is_of_job
    if (expected, logged) != (expected if is_of_job else len(ranks), ranks):
        yield f"expects {counted(expected, 'rank')} and saw {logged}, but has the logs of ranks {ranks}"


def _contradictory_exit_codes(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield which trainers did not end well, or that some have no exit code."""
    # Servers and producers are ended, not awaited.
    trainers = {
        task: code for task, code in facts["exit_codes"].items() if not task.startswith((TaskRole.SERVER, PRODUCER))
    }
    if failed := ", ".join(f"{task}: {code}" for task, code in trainers.items() if code != 0):
        yield f"outcome is completed in run.json, but exit codes of trainers are not 0 ({failed})"
    matches = filter(None, map(_TASK_OF_RANK.fullmatch, trainers))
    ranks = sorted(int(match[1]) for match in matches)
    if not trainers or (ranks and ranks != list(range(facts["ranks_expected"]))):
        with_code = ", ".join(trainers) or "none"
        yield f"outcome is completed in run.json, but not every trainer has an exit code (those of {with_code})"


def _contradictory_time(facts: Mapping[str, Any]) -> Iterator[str]:
    end = datetime.fromisoformat(str(facts["started"])).timestamp() + (facts["seconds"] or 0.0)
    if end > (datetime.now(UTC) + CLOCKS_APART).timestamp():
        lasted = f"it lasted {facts['seconds']:.4g} s since {facts['started']}, which is not over yet"
        yield f"{lasted}: set the clock of its first node, or run.json was changed"


def _contradictory_request(facts: Mapping[str, Any], paths: RunPaths) -> Iterator[str]:
    """Yield in what the file that the ranks read differs from the record; earlier evidence may not have it."""
    file, recorded = paths.configuration_file, facts["configuration"]
    requested = object_of(text_of(file), str(file)) if file.exists() else {}
    for name in recorded.keys() & requested.keys():
        if recorded[name] != requested[name]:
            values = f"{json.dumps(requested[name])} in {file.name}, but {json.dumps(recorded[name])} in run.json"
            yield f"{name} is {values}"


def _contradictory_nodes(logs: Sequence[RankLog], facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ranks that ran on other hosts, or with other versions of a library, than their nodes reported."""
    reports = dict(enumerate(facts["nodes"]))
    for log in logs:
        # A program may be in a container, its launcher may number the nodes, and the driver writes what it printed.
        report = {} if log.is_of_program else reports.get(log.facts["node"], {})
        host, reported_host = log.facts["host"], report.get("hardware", {}).get("host")
        if reported_host not in (None, host):
            yield f"rank {log.rank} ran on {host}, but its node is {reported_host}"
        library, version = log.facts["library"], log.facts["library_version"]
        # A program may train with another Python than the one whose packages are in the record.
        versions = [] if log.is_of_program else _versions_of(library, facts["environment"]["software"])
        # Horovod's names that of its framework too: 0.28.1 with torch 2.13.0.
        if versions and _BUILD.sub("", version.partition(" ")[0]) not in versions:
            yield f"rank {log.rank} trained with {library} {version}, but run.json says {', '.join(versions)}"


def _versions_of(library: str, software: Mapping[str, str]) -> list[str]:
    """Return the versions of the packages that can be a library, as ``paddlepaddle-gpu`` can be paddle."""
    package = re.compile(rf"{re.escape(library)}(?:{re.escape(library)})?(?:-gpu|-cpu)?")
    return [_BUILD.sub("", version) for name, version in software.items() if package.fullmatch(name)]


def _impossible_work(logs: Sequence[RankLog], facts: Mapping[str, Any], configuration: Configuration) -> Iterator[str]:
    """Yield that a rank would have computed faster than any processor, where its log says the work of a sample."""
    device, cores = facts["cluster"]["device"], facts["environment"]["hardware"].get("cores")
    units = 1 if device == "gpu" else cores
    for log in logs:
        flops = None if log.is_of_program else log.facts.get("flops_per_sample")
        if flops and units and device in LARGEST_FLOPS:
            rate = flops * configuration.batch_per_device / log.windows[TRAINING].mean_seconds
            if rate > units * LARGEST_FLOPS[device]:
                yield f"rank {log.rank} would compute {rate:.3g} FLOP/s: its flops_per_sample can't be right"
