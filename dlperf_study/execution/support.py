"""Which configurations can run here, with which version of the library, and on which images."""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dlperf_study import data_sources, frameworks, launchers, models
from dlperf_study.cluster import gpu_support
from dlperf_study.cluster.auto_device import gpu_obstacle_here
from dlperf_study.cluster.cluster import DEFAULT, Cluster
from dlperf_study.cluster.cluster_file import read_cluster
from dlperf_study.cluster.compiler_support import compiler_obstacle_here
from dlperf_study.cluster.library_answer import library_answer
from dlperf_study.errors import ImageSetError, RunError, StudyFileError, UnsupportedError
from dlperf_study.frameworks._base import Framework
from dlperf_study.guard.installed_packages import LOCAL_NODE, UnusablePython, installed_packages
from dlperf_study.guard.submission import Node
from dlperf_study.image_sets.opening import decode_some, open_image_set, require_classes
from dlperf_study.image_sets.photographs import made_image_sets
from dlperf_study.plan.plan import Plan
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.strict_yaml import Location, key_path
from dlperf_study.wording import unknown_name

NO_IMAGES = PARAMETERS["image_set"].default
#: How many images of a set are decoded before the first run of a study, in two seconds.
DECODED_BEFORE_A_STUDY = 1000

#: The place of a value, given the name of its parameter, as messages name it: ``x.yaml: factors.model[0]``.
Locate = Callable[[str, str], str]


def load_cluster(name_or_path: str | Path, framework_names: Collection[str] | None = None) -> Cluster:
    """Return a cluster by its name in ``params/clusters`` or by the path of its file.

    ``framework_names`` are the frameworks that will train, on which the device ``auto`` depends; None: all.
    Raises StudyFileError for any error in the file.
    """
    return read_cluster(name_or_path, launchers.by_name(), framework_names)


def check_names(configuration: Configuration, cluster: Cluster, locate: Locate) -> None:
    """Refuse a name in a configuration, or a key of a cluster's ``python`` or ``images``, that doesn't exist.

    Such a name is an error of the user, unlike one that exists and is not supported: a strategy may be one of another
    framework, or refused with a reason.
    Raises StudyFileError with the most similar name, and the choices.
    """
    framework, strategy, model = configuration.framework, configuration.strategy, configuration.model
    _require(f"{locate('framework', framework)} is", framework, "frameworks", frameworks.names())
    if strategy not in strategies():
        kind, built = f"strategies of {framework}", frameworks.load(framework).strategies
        _require(f"{locate('strategy', strategy)} is", strategy, kind, built)
    _require(f"{locate('model', model)} is", model, "models", models.names())
    source = configuration.data_source
    _require(f"{locate('data_source', source)} is", source, "data sources", data_sources.names())
    launcher = launchers.load(cluster.launcher)
    images = launcher.images(cluster) if launcher.images else {}
    for key, section in (("python", cluster.python), (f"{cluster.launcher}.images", images)):
        for name in set(section) - {DEFAULT}:
            _require(f"cluster {cluster.name}: {key} has a key", name, "frameworks", frameworks.names())


def unknown_names(content: Any, source: str, location: Location | None = None) -> Iterator[str]:
    """Yield a message for each framework, model and data source of a study file that doesn't exist, by its key.

    ``content`` may have any other error too.
    """
    location = location or []
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from unknown_names(value, source, [*location, key])
        return
    for parameter, names in (
        ("framework", frameworks.names()),
        ("model", models.names()),
        ("data_source", data_sources.names()),
    ):
        if parameter in location and isinstance(content, str) and content not in names:
            yield unknown_name(f"{source}: {key_path(location)} is", content, f"{parameter.replace('_', ' ')}s", names)


@cache
def strategies() -> tuple[str, ...]:
    """Return the strategies of all frameworks in alphabetical order, also those that are refused, with a reason."""
    names: set[str] = set()
    for framework in frameworks.all_frameworks():
        names.update(framework.strategies, framework.refused_strategies)
    return tuple(sorted(names))


def _require(where: str, name: str, kind: str, choices: Collection[str]) -> None:
    if name not in choices:
        raise StudyFileError(unknown_name(where, name, kind, choices))


def unsupported_here(configuration: Configuration, cluster: Cluster, locate: Locate | None = None) -> str | None:
    """Return every reason why this cluster's software can't run the configuration, in one line, or None.

    ``locate`` returns where a study file has a value; without it, messages name the study.
    Raises StudyFileError for a name that does not exist: it is misspelt, and not unsupported; and UnsupportedError
    when a Python can't be run or reached, so that its libraries are unknown.
    """
    check_names(configuration, cluster, locate or (lambda name, _: f"study {configuration.study}: {name}"))
    framework = frameworks.load(configuration.framework)
    reasons: list[str] = []
    version: str | None = ""
    try:
        version = library_version(framework, cluster)
        reasons.extend(_missing_packages(configuration, cluster))
    except UnusablePython as error:
        reasons.append(f"the Python for {framework.name} can't be used: {error}")
    reasons.extend(framework.obstacles(configuration, cluster, version))
    reasons.append(image_set_obstacle(configuration, cluster))
    if configuration.cpu_limit:
        reasons.append(launchers.load(cluster.launcher).cpu_limit_obstacle(cluster, configuration))
    if version and cluster.device == "gpu" and framework.gpu_support:
        reasons.append(_gpu_obstacle(framework, cluster, configuration.devices_per_node))
    if version and cluster.is_this_machine:
        reasons.append(compiler_obstacle_here(configuration, cluster))
    return "; ".join(filter(None, reasons)) or None


def _gpu_obstacle(framework: Framework, cluster: Cluster, wanted: int) -> str:
    """Return why a framework can't train on so many GPUs of a node, as far as this machine can tell; or nothing.

    Which GPUs there are elsewhere, a run asks its nodes. But a build without CUDA would hold them for nothing.
    """
    if cluster.is_this_machine:
        return gpu_obstacle_here(cluster, framework.name, wanted)
    if launchers.load(cluster.launcher).uses_images:
        return ""
    python = cluster.python_for(framework.name)
    command = (*cluster.container, python, "-m", gpu_support.MODULE, framework.name)
    try:
        support = gpu_support.support_of(library_answer(_node_with(python, cluster).command(*command), os.environ))
    except RunError:
        # It may need libraries that only the nodes have.
        return ""
    return gpu_support.gpu_obstacle(framework, support, wanted=0)


def require_support(configuration: Configuration, cluster: Cluster) -> None:
    """Raise UnsupportedError with the reason when the configuration can't run here."""
    reasons = [*cluster.obstacles(configuration)]
    if unsupported := unsupported_here(configuration, cluster):
        reasons.append(unsupported)
    if reasons:
        raise UnsupportedError(f"{configuration.identity}: {'; '.join(reasons)}")


def library_version(framework: Framework, cluster: Cluster) -> str | None:
    """Return the version of the framework's library in the Python the cluster names for it, or None.

    Raises UnusablePython when this package is not in that Python, UnsupportedError when it can't be run or reached.
    """
    return framework.version_in(_versions_for(framework, cluster, (*framework.packages, *framework.further_packages)))


def data_source_versions(configuration: Configuration, cluster: Cluster) -> dict[str, str | None]:
    """Return the versions of the packages that the data source needs, None for one that is not installed.

    Raises as ``library_version`` does.
    """
    name, framework = configuration.data_source, frameworks.load(configuration.framework)
    packages = data_sources.load(name).packages if name in data_sources.names() else ()
    versions = _versions_for(framework, cluster, packages) if packages else {}
    return {package: versions.get(package) for package in packages}


def _missing_packages(configuration: Configuration, cluster: Cluster) -> Iterator[str]:
    for package, version in data_source_versions(configuration, cluster).items():
        if version is None:
            where = f"the Python that the cluster file names for {configuration.framework}"
            source = data_sources.load(configuration.data_source)
            here = f"`{source.remedy}` installs it in this project's own environment"
            yield f"data_source {source.name} needs {package}, which is not installed in {where}; {here}"


def _versions_for(framework: Framework, cluster: Cluster, packages: tuple[str, ...]) -> Mapping[str, str]:
    """Return the versions of installed packages, also of ``packages``, in the Python that trains with a framework."""
    launcher = launchers.load(cluster.launcher)
    # Images are compared with the Python of the driver when a run starts.
    python = sys.executable if launcher.uses_images else cluster.python_for(framework.name)
    # A run checks at its start that all nodes have the same versions, so a plan or a report needs no node.
    argv = (python,) if _is_on_this_machine(python) else (*cluster.container, python)
    try:
        versions = _installed_versions(argv, packages, _node_with(python, cluster))
    except RunError as error:
        raise UnsupportedError(f"cluster {cluster.name}: the Python for {framework.name}: {error}") from error
    if isinstance(versions, UnusablePython):
        raise UnusablePython(str(versions))
    return versions


def _node_with(python: str, cluster: Cluster) -> Node:
    """Return the machine that a plan asks about a Python: this one, if it is here."""
    return LOCAL_NODE if _is_on_this_machine(python) else launchers.load(cluster.launcher).representative_node(cluster)


@cache
def _is_on_this_machine(python: str) -> bool:
    return shutil.which(python) is not None


@cache
def _installed_versions(
    argv: tuple[str, ...], packages: tuple[str, ...], node: Node
) -> Mapping[str, str] | UnusablePython:
    """Return the versions of packages in a Python, which is started once; it imports no library."""
    try:
        versions: dict[str, str] = installed_packages(argv, packages, node)["software"]
    except UnusablePython as error:
        return error
    return versions


def image_set_obstacle(configuration: Configuration, cluster: Cluster) -> str:
    """Return why the cluster can't have the images of a configuration; empty if it has, or if only its nodes know.

    Raises ImageSetError if they are on this machine and damaged, or of other classes than the configuration: that is an
    error of the user, while a set that is nowhere may be on another cluster.
    """
    name, folder = configuration.image_set, cluster.image_folder(configuration)
    if name == NO_IMAGES:
        return ""
    if not folder:
        names = ", ".join(cluster.image_sets)
        return f"image_set is {name}, but cluster {cluster.title} has no folder for it under image_sets: it has {names}"
    # Of other machines, each node is asked at the start of a run.
    if not cluster.is_this_machine:
        return ""
    if folder == made_image_sets().get(name) and not Path(folder).exists():
        return f"image_set {name} is not made yet; `make data` makes it"
    try:
        require_classes(Path(folder), _number_of_classes(folder), configuration.classes)
    except ImageSetError as error:
        raise ImageSetError(f"image_set {name}: {error}") from error
    return ""


def decode_images(plan: Plan, cluster: Cluster) -> None:
    """Decode some images of every set that the plan reads, if they are on this machine.

    Raises ImageSetError for the first that can't be decoded.
    """
    if not cluster.is_this_machine:
        return
    folders = {entry.configuration.image_set: cluster.image_folder(entry.configuration) for entry in plan.runnable}
    for name, folder in folders.items():
        if name != NO_IMAGES:
            try:
                decode_some(open_image_set(Path(folder)), DECODED_BEFORE_A_STUDY)
            except ImageSetError as error:
                raise ImageSetError(f"image_set {name}: {error}") from error


@cache
def _number_of_classes(folder: str) -> int:
    """Return how many classes a folder has; it is opened once, and every file of it is looked at."""
    return len(open_image_set(Path(folder)).classes)
