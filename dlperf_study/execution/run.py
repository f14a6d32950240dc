"""One run: from a configuration and a repetition to evidence. What the notebook calls."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from dlperf_study import frameworks, launchers
from dlperf_study.errors import RunError
from dlperf_study.execution.disk import shortage
from dlperf_study.execution.fingerprint import fingerprint
from dlperf_study.execution.gate import machine_lock, wait_until_idle
from dlperf_study.execution.record import Circumstances, is_completed, record, write
from dlperf_study.execution.support import require_support
from dlperf_study.launchers.base import Submission
from dlperf_study.paths import ConfigurationPaths, RunPaths, StudyPaths
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.cluster_file import load_cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.outcome import Outcome


def perform_runs(configuration: Configuration) -> list[dict[str, Any]]:
    """Do every repetition that is not done yet; return the records of all, in order.

    A run that does not complete is recorded and does not keep the next from being tried.
    """
    cluster = load_cluster(configuration.cluster)
    require_support(configuration, cluster)
    home = paths_of(configuration)
    with machine_lock(configuration.identity):
        records = [_perform(configuration, cluster, k, home.run(k), {}) for k in range(1, configuration.repeats + 1)]
        return [*records, *_perform_traced(configuration, cluster)]


def submission(configuration: Configuration) -> Submission:
    """Return what would be started for the first repetition."""
    paths = paths_of(configuration).run(1)
    return _render(configuration, load_cluster(configuration.cluster), paths, {})


def trace_is_missing(configuration: Configuration, cluster: Cluster) -> bool:
    """Return whether a traced run is asked for, possible, and not done yet by this code."""
    if not (configuration.trace_steps and configuration.world_size > 1):
        return False
    traced = configuration.traced
    done = is_completed(paths_of(configuration).trace(traced.identity), fingerprint(traced, cluster))
    return bool(frameworks.load(configuration.framework).tracing) and not done


def missing_repetitions(configuration: Configuration, cluster: Cluster) -> list[int]:
    """Return the repetitions that have no completed run by this code yet."""
    paths, wanted = paths_of(configuration), fingerprint(configuration, cluster)
    return [k for k in range(1, configuration.repeats + 1) if not is_completed(paths.run(k), wanted)]


def require_completed(records: list[dict[str, Any]]) -> None:
    """Raise RunError, with the last lines of the logs, unless every run completed."""
    failures = list(_failures(records))
    if failures:
        raise RunError("\n".join(failures))


def paths_of(configuration: Configuration) -> ConfigurationPaths:
    """Return where the evidence of a configuration lies."""
    return StudyPaths.of(configuration.study).configuration(configuration.identity)


def _perform_traced(configuration: Configuration, cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Do the run in which the library traces itself, apart from those that are measured: tracing costs time."""
    if trace_is_missing(configuration, cluster):
        traced = configuration.traced
        paths = paths_of(configuration).trace(traced.identity)
        yield _perform(traced, cluster, 1, paths, frameworks.load(configuration.framework).tracing)


def _perform(
    configuration: Configuration, cluster: Cluster, repetition: int, paths: RunPaths, variables: dict[str, str]
) -> dict[str, Any]:
    wanted = fingerprint(configuration, cluster)
    if is_completed(paths, wanted):
        return dict(json.loads(paths.run_file.read_bytes()))
    _prepare(configuration, paths)
    rendered = _render(configuration, cluster, paths, variables)
    paths.submission_file.write_text(rendered.as_json())
    load = wait_until_idle(cluster)
    circumstances = Circumstances(configuration, repetition, wanted, cluster, datetime.now(UTC).isoformat())
    ending = launchers.load(cluster.launcher).execute(rendered, configuration.timeout_seconds)
    facts = record(circumstances, load, ending, paths)
    write(facts, paths)
    if ending.interrupted:
        raise KeyboardInterrupt
    return facts


def _prepare(configuration: Configuration, paths: RunPaths) -> None:
    """Make an empty folder for the run; what an earlier attempt left there is kept aside."""
    home = ConfigurationPaths(paths.folder.parents[1])
    home.folder.mkdir(parents=True, exist_ok=True)
    if lack := shortage(home.folder):
        raise RunError(lack)
    if paths.folder.exists():
        aside = home.interrupted()
        aside.parent.mkdir(parents=True, exist_ok=True)
        paths.folder.rename(aside)
    paths.folder.mkdir(parents=True)
    paths.configuration_file.write_text(json.dumps(configuration.as_dict(), indent=1))


def _render(configuration: Configuration, cluster: Cluster, paths: RunPaths, variables: dict[str, str]) -> Submission:
    job = frameworks.load(configuration.framework).job(configuration, cluster).with_environment(variables)
    return launchers.load(cluster.launcher).render(job, cluster, paths.folder)


def _failures(records: list[dict[str, Any]]) -> Iterator[str]:
    for facts in records:
        if facts["outcome"] != Outcome.COMPLETED:
            yield f"run {facts['repetition']}: {facts['outcome']}: {facts['reason']}"
            for task, lines in facts["tail"].items():
                yield f"  {task}, last lines:"
                yield from (f"    {line}" for line in lines[-5:])
