"""One run: from a configuration and a repetition to evidence. What the notebook calls."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from dlperf_study import frameworks, launchers
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.software import measuring_code
from dlperf_study.errors import RunError
from dlperf_study.evidence.run_record import Circumstances, is_completed, record, shortage, write
from dlperf_study.execution.gate import study_lock
from dlperf_study.execution.support import library_version, load_cluster, require_support
from dlperf_study.guard.submission import Submission
from dlperf_study.paths import ConfigurationPaths, RunPaths, StudyPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome

# What a run's numbers depend on besides the machine: if it changed, the run is measured again.


def fingerprint(configuration: Configuration, cluster: Cluster) -> str:
    """Return a digest of the configuration, the measuring code, the library and the Python that ran it."""
    framework = frameworks.load(configuration.framework)
    parts = {
        "configuration": configuration.identifying_values(),
        "code": measuring_code(),
        "library": library_version(framework, cluster),
        "python": launchers.load(cluster.launcher).runtime(cluster, configuration.framework),
        "device": cluster.device,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class _Asked:
    """One run that is wanted, and the environment that makes it another one than the configuration alone."""

    configuration: Configuration
    repetition: int
    paths: RunPaths
    variables: dict[str, str] = field(default_factory=dict)


def perform_runs(configuration: Configuration) -> list[dict[str, Any]]:
    """Do every repetition that is not done yet; return the records of all, in order.

    A run that does not complete is recorded and does not keep the next from being tried.
    """
    cluster = load_cluster(configuration.cluster)
    require_support(configuration, cluster)
    with study_lock(configuration.study, cluster):
        asked = [*_repetitions(configuration), *_traced(configuration, cluster)]
        _perform([one for one in asked if not _is_done(one, cluster)], cluster, configuration.timeout_seconds)
        return [json.loads(one.paths.run_file.read_bytes()) for one in asked]


def submission_text(configuration: Configuration) -> str:
    """Return what would be started for the first repetition, for people: scripts and manifests, then the commands."""
    [first, *_] = _repetitions(configuration)
    rendered = _render(first, load_cluster(configuration.cluster))
    own = first.paths.configuration_file.name
    return "\n".join([*(text for name, text in rendered.files.items() if name != own), rendered.as_json()])


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


def _repetitions(configuration: Configuration) -> list[_Asked]:
    home = paths_of(configuration)
    return [_Asked(configuration, k, home.run(k)) for k in range(1, configuration.repeats + 1)]


def _traced(configuration: Configuration, cluster: Cluster) -> list[_Asked]:
    """Return the run in which the library traces itself, apart from those that are measured: tracing costs time."""
    if not trace_is_missing(configuration, cluster):
        return []
    traced = configuration.traced
    tracing = frameworks.load(configuration.framework).tracing
    return [_Asked(traced, 1, paths_of(configuration).trace(traced.identity), tracing)]


def _is_done(asked: _Asked, cluster: Cluster) -> bool:
    return is_completed(asked.paths, fingerprint(asked.configuration, cluster))


def _perform(missing: list[_Asked], cluster: Cluster, timeout_seconds: float) -> None:
    """Do these runs, and record each as it ends; a run that never began leaves nothing."""
    if not missing:
        return
    _need_disk(missing[0].configuration)
    submissions = [_render(asked, cluster) for asked in missing]
    with closing(launchers.load(cluster.launcher).execute(submissions, cluster, timeout_seconds)) as results:
        for asked, result in zip(missing, results, strict=True):
            known = Circumstances(
                asked.configuration, asked.repetition, fingerprint(asked.configuration, cluster), cluster
            )
            write(record(known, result, asked.paths), asked.paths)
            if result.interrupted:
                raise KeyboardInterrupt


def _need_disk(configuration: Configuration) -> None:
    home = paths_of(configuration)
    home.folder.mkdir(parents=True, exist_ok=True)
    if lack := shortage(home.folder):
        raise RunError(lack)


def _render(asked: _Asked, cluster: Cluster) -> Submission:
    configuration = asked.configuration
    job = frameworks.load(configuration.framework).job(configuration, cluster).with_environment(asked.variables)
    rendered = launchers.load(cluster.launcher).render(
        replace(job, framework=configuration.framework), cluster, asked.paths.folder
    )
    text = json.dumps(configuration.as_dict(), indent=1)
    return replace(
        rendered,
        fingerprint=fingerprint(configuration, cluster),
        files={**rendered.files, asked.paths.configuration_file.name: text},
    )


def _failures(records: list[dict[str, Any]]) -> Iterator[str]:
    for facts in records:
        if facts["outcome"] != Outcome.COMPLETED:
            yield f"run {facts['repetition']}: {facts['outcome']}: {facts['reason']}"
            for task, lines in facts["tail"].items():
                yield f"  {task}, last lines:"
                yield from (f"    {line}" for line in lines[-5:])
