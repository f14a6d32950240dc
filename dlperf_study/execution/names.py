"""Names in study and cluster files that nothing here bears: mistakes, unlike what is known and not built."""

from collections.abc import Collection

from dlperf_study import frameworks, models
from dlperf_study.errors import StudyFileError
from dlperf_study.spelling import unknown
from dlperf_study.study.cluster import DEFAULT, Cluster
from dlperf_study.study.configuration import Configuration


def check_names(configuration: Configuration, cluster: Cluster, source: str) -> None:
    """Refuse a name in a configuration, or a key of a cluster's ``python`` or ``images``, that doesn't exist.

    ``source`` is what messages name as the place of the configuration.
    Raises StudyFileError with the name most like it, and the choices.
    """
    _require(f"{source}: framework is", configuration.framework, "frameworks", frameworks.names())
    _require(f"{source}: strategy is", configuration.strategy, "strategies", strategies())
    _require(f"{source}: model is", configuration.model, "models", models.names())
    for key, named in (("python", cluster.python), ("kubernetes.images", cluster.kubernetes.images)):
        for name in set(named) - {DEFAULT}:
            _require(f"cluster {cluster.name}: {key} has a key", name, "frameworks", frameworks.names())


def strategies() -> tuple[str, ...]:
    """Return the strategies of all frameworks in alphabetical order, also those that are refused, with a reason."""
    every = map(frameworks.load, frameworks.names())
    return tuple(sorted({name for one in every for name in (*one.strategies, *one.refused)}))


def _require(where: str, name: str, kind: str, choices: Collection[str]) -> None:
    if name not in choices:
        raise StudyFileError(unknown(where, name, kind, choices))
