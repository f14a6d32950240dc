"""Which configurations can run here, and with which version of the library."""

import shutil
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from dlperf_study import frameworks, launchers, models
from dlperf_study.cluster.cluster import DEFAULT, Cluster
from dlperf_study.cluster.cluster_file import read_cluster
from dlperf_study.errors import RunError, StudyFileError, UnsupportedError
from dlperf_study.frameworks._base import Framework
from dlperf_study.guard.installed_packages import LOCAL_NODE, UnusablePython, installed_packages
from dlperf_study.guard.submission import Node
from dlperf_study.study.configuration import Configuration
from dlperf_study.wording import unknown

# The cluster that is meant, with a launcher that there is.


def load_cluster(name_or_path: str | Path) -> Cluster:
    """Return a cluster by its name in ``params/clusters`` or by the path of its file.

    Raises StudyFileError for any mistake in the file.
    """
    return read_cluster(name_or_path, launchers.by_name())


# Names in study and cluster files that nothing here bears: mistakes, unlike what is known and not built.


def check_names(configuration: Configuration, cluster: Cluster, source: str) -> None:
    """Refuse a name in a configuration, or a key of a cluster's ``python`` or ``images``, that doesn't exist.

    ``source`` is what messages name as the place of the configuration.
    Raises StudyFileError with the name most like it, and the choices.
    """
    _require(f"{source}: framework is", configuration.framework, "frameworks", frameworks.names())
    _require(f"{source}: strategy is", configuration.strategy, "strategies", strategies())
    _require(f"{source}: model is", configuration.model, "models", models.names())
    launcher = launchers.load(cluster.launcher)
    images = launcher.images(cluster) if launcher.images else {}
    for key, named in (("python", cluster.python), (f"{cluster.launcher}.images", images)):
        for name in set(named) - {DEFAULT}:
            _require(f"cluster {cluster.name}: {key} has a key", name, "frameworks", frameworks.names())


def strategies() -> tuple[str, ...]:
    """Return the strategies of all frameworks in alphabetical order, also those that are refused, with a reason."""
    names: set[str] = set()
    for framework in frameworks.all_frameworks():
        names.update(framework.strategies, framework.refused_strategies)
    return tuple(sorted(names))


def _require(where: str, name: str, kind: str, choices: Collection[str]) -> None:
    if name not in choices:
        raise StudyFileError(unknown(where, name, kind, choices))


def unsupported_here(configuration: Configuration, cluster: Cluster, source: str = "") -> str | None:
    """Return why this cluster's software can't run the configuration, or None.

    ``source`` is what messages name as the place of the configuration, if not its study.
    Raises StudyFileError for a name that nothing here bears: it is misspelt, and not unsupported; and
    UnsupportedError when a Python can't be run or reached, so that nothing is known of it.
    """
    check_names(configuration, cluster, source or f"study {configuration.study}")
    framework = frameworks.load(configuration.framework)
    try:
        version = library_version(framework, cluster)
    except UnusablePython as error:
        return f"the Python for {framework.name} can't be used: {error}"
    return "; ".join(framework.obstacles(configuration, cluster, version)) or None


def require_support(configuration: Configuration, cluster: Cluster) -> None:
    """Raise UnsupportedError with the reason when the configuration can't run here."""
    reasons = (cluster.too_small_for(configuration), unsupported_here(configuration, cluster))
    if any(reasons):
        raise UnsupportedError(f"{configuration.identity}: {'; '.join(filter(None, reasons))}")


def library_version(framework: Framework, cluster: Cluster) -> str | None:
    """Return the version of the framework's library in the Python the cluster names for it, or None.

    Those of the libraries beside it follow: ``0.28.1 with torch 2.13.0``.
    Raises UnusablePython when that Python has not this package, UnsupportedError when it can't be run or reached.
    """
    versions = _versions(framework, cluster)
    version = next((versions[name] for name in framework.packages if name in versions), None)
    further = [f"{name} {versions.get(name)}" for name in framework.further_packages]
    return " with ".join([version, *further]) if version else None


def _versions(framework: Framework, cluster: Cluster) -> Mapping[str, str]:
    """Return versions by package, as ``library_version`` needs them, and raise as it does."""
    python, node = _python(framework, cluster)
    try:
        answer = _asked(python, (*framework.packages, *framework.further_packages), node)
    except RunError as error:
        raise UnsupportedError(f"cluster {cluster.name}: the Python for {framework.name}: {error}") from error
    if isinstance(answer, UnusablePython):
        raise UnusablePython(str(answer))
    return answer


def _python(framework: Framework, cluster: Cluster) -> tuple[tuple[str, ...], Node]:
    """Return the argv of the Python to ask, and where: on this machine if it is here, else where the launcher says.

    That nodes have the same versions is seen to when a run starts; so a plan or a report needs no node to answer.
    """
    launcher = launchers.load(cluster.launcher)
    # Images are compared with the Python of the driver when a run starts.
    python = sys.executable if launcher.uses_images else cluster.python_for(framework.name)
    if shutil.which(python):
        return (python,), LOCAL_NODE
    return (*cluster.container, python), launcher.representative_node(cluster)


@cache
def _asked(python: tuple[str, ...], packages: tuple[str, ...], node: Node) -> Mapping[str, str] | UnusablePython:
    """Ask a Python for versions, once; no library is imported there."""
    try:
        versions: dict[str, str] = installed_packages(python, packages, node)["software"]
    except UnusablePython as error:
        return error
    return versions
