"""What was measured of a study before: what of it counts for a plan, and what does not, each with the reason."""

import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import counted
from dlperf_study.execution.cache_key import differences
from dlperf_study.execution.repetitions import requested_runs
from dlperf_study.machines.cluster import Cluster
from dlperf_study.records.run_record import is_completed, read
from dlperf_study.study.batch_search import searched, trial
from dlperf_study.study.configuration import Configuration, cluster_title
from dlperf_study.study.plan import Plan


@dataclass
class _OtherRuns:
    """Completed runs that do not count for a plan."""

    count: int = 0
    is_here: bool = False


def not_counted(plan: Plan, cluster: Cluster, done: Mapping[str, int]) -> list[str]:
    """Return a sentence for each kind of uncounted runs.

    ``done``: how many planned runs of each configuration are completed.
    """
    return [*_count_other_cache_keys(plan, cluster, done), *_count_other_configurations(plan, cluster)]


def _count_other_cache_keys(plan: Plan, cluster: Cluster, done: Mapping[str, int]) -> Iterator[str]:
    """Yield how many runs have other code, software or settings."""
    reasons = Counter[str]()
    begun_runs = StudyPaths.of(plan.study).begun_runs()
    for entry in plan.runnable:
        configuration = entry.configuration
        repetitions = [paths.repetition for paths in begun_runs.get(configuration.configuration_id, ())]
        if len(repetitions) <= done.get(configuration.configuration_id, 0):
            continue
        for run in requested_runs(configuration, cluster, repetitions):
            facts = read(run.paths) if run.is_measured else None
            if facts and is_completed(facts) and facts["cache_key"] != run.cache_key:
                reasons["; ".join(differences(facts, run)) or "another version computed the cache key"] += 1
    for reason, count in reasons.items():
        yield f"{counted(count, 'run')} of this plan {_verb(count)} not count: {reason}"


def _count_other_configurations(plan: Plan, cluster: Cluster) -> Iterator[str]:
    """Yield how many runs are of other clusters or configurations."""
    clusters: dict[str, _OtherRuns] = {}
    removed: list[int] = []
    for configuration, records in _other_configurations(plan):
        if replace(configuration, cluster=plan.cluster).configuration_id in plan.by_id:
            of_cluster = clusters.setdefault(configuration.cluster, _OtherRuns())
            of_cluster.count += len(records)
            host = records[-1]["environment"]["hardware"].get("host")
            is_here = cluster.is_this_machine and host == socket.gethostname()
            of_cluster.is_here = of_cluster.is_here or is_here
        else:
            removed.append(len(records))
    for name, of_cluster in clusters.items():
        count, title = of_cluster.count, cluster_title(plan.cluster)
        here = ", although both are this machine" if of_cluster.is_here else ""
        sentence = f"{counted(count, 'run')} of cluster {cluster_title(name)} {_verb(count)} not count"
        yield f"{sentence} on cluster {title}{here}; choose --cluster {name} to use them"
    if removed:
        count, configurations = sum(removed), counted(len(removed), "configuration")
        yield f"{counted(count, 'run')} {_verb(count)} not count, of {configurations} not in this plan"


def _other_configurations(plan: Plan) -> Iterator[tuple[Configuration, list[dict[str, Any]]]]:
    for configuration_id, runs in StudyPaths.of(plan.study).begun_runs().items():
        if configuration_id in plan.by_id:
            continue
        records = [facts for facts in map(read, runs) if facts and is_completed(facts)]
        if not records:
            continue
        try:
            configuration = Configuration.from_mapping(records[0]["configuration"])
        except StudyFileError:
            # An earlier version wrote parameters that there are no more.
            continue
        trials = (trial(first, configuration.batch_per_device) for first in searched(plan).values())
        if configuration.configuration_id not in {each.configuration_id for each in trials}:
            yield configuration, records


def _verb(count: int) -> str:
    return "does" if count == 1 else "do"
