"""What the Pythons of a cluster have installed, and what their libraries can do with its GPUs and its compilers.

Each is asked in the very Python that trains.
"""

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from dlperf_study.core.errors import RunError, UnsupportedError
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.cluster.software import gpu_answer, library_answer
from dlperf_study.machines.node_agent.installed_packages import LOCAL_NODE, UnusablePython, installed_packages
from dlperf_study.machines.node_agent.submission import Node
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.gpu_support import GpuSupport
from dlperf_study.study.program import OWN_PROGRAM
from dlperf_study.training import data_loaders, frameworks, questions
from dlperf_study.training.frameworks._base import Framework
from dlperf_study.training.questions import compiler_question, gpu_question

#: Prints a Python and the versions of those packages, named as arguments, that it has.
_QUESTION = """
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version
packages = {}
for name in sys.argv[1:]:
    try:
        packages[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps({"python": platform.python_implementation() + " " + platform.python_version(), "packages": packages}))
"""


def library_version(framework: Framework, cluster: Cluster) -> str | None:
    """Return the version of a framework's library on a cluster, or None.

    Raises UnusablePython when this package is not in that Python, UnsupportedError when it can't be run or reached.
    """
    return framework.version_in(_versions_for(framework, cluster, (*framework.packages, *framework.further_packages)))


def measuring_software(configuration: Configuration, cluster: Cluster) -> tuple[str, dict[str, str]]:
    """Return the Python that trains and its packages.

    Of a user's program these are the packages that train or read data; what else it imports is not known.
    """
    if configuration.own_program:
        python = cluster.python_for(OWN_PROGRAM)
        if launchers.load(cluster.launcher).uses_images:
            # The image has the Python, which can't be asked before it runs.
            return "", {}
        return _software_of_program(python, _node_with(python, cluster).command(*_start_python(python, cluster)))
    framework = frameworks.load(configuration.framework)
    names = (*framework.packages, *framework.further_packages)
    software = _versions_for(framework, cluster, names)
    versions = {name: software[name] for name in ("numpy", *names) if name in software}
    for name, version in data_loader_versions(configuration, cluster).items():
        if version:
            versions[name] = version
    return f"{software.get('implementation', '')} {software.get('python', '')}", versions


def data_loader_versions(configuration: Configuration, cluster: Cluster) -> dict[str, str | None]:
    """Return the versions of a data loader's packages, None if missing.

    Raises as ``library_version`` does.
    """
    name = configuration.data_loader
    if name not in data_loaders.names() or not data_loaders.load(name).packages:
        return {}
    packages = data_loaders.load(name).packages
    versions = _versions_for(frameworks.load(configuration.framework), cluster, packages)
    return {package: versions.get(package) for package in packages}


def missing_packages(configuration: Configuration, cluster: Cluster) -> Iterator[str]:
    """Yield each package of the data loader that is missing."""
    for package, version in data_loader_versions(configuration, cluster).items():
        if version is None:
            where = f"the Python of the cluster file for {configuration.framework}"
            source = data_loaders.load(configuration.data_loader)
            here = f"`{source.remedy}` installs it in this project's own environment"
            yield f"data_loader {source.name} needs {package}, which is not installed in {where}; {here}"


def _versions_for(framework: Framework, cluster: Cluster, packages: tuple[str, ...]) -> Mapping[str, str]:
    """Return the versions of packages where a framework trains."""
    python = cluster.python_for(framework.name)
    if launchers.load(cluster.launcher).uses_images:
        # Images are compared with the Python of the controller when a run starts.
        python = sys.executable
    # A run checks at its start that all nodes have the same versions, so a plan or a report needs no node.
    try:
        versions = _installed_versions(_start_python(python, cluster), packages, _node_with(python, cluster))
    except RunError as error:
        raise UnsupportedError(f"cluster {cluster.name}: the Python for {framework.name}: {error}") from error
    if isinstance(versions, UnusablePython):
        raise UnusablePython(str(versions))
    return versions


def _start_python(python: str, cluster: Cluster) -> tuple[str, ...]:
    """Return the argv of a Python, which a container may have."""
    if _is_on_this_machine(python):
        return (python,)
    return (*cluster.container, python)


def _node_with(python: str, cluster: Cluster) -> Node:
    if _is_on_this_machine(python):
        return LOCAL_NODE
    return launchers.load(cluster.launcher).representative_node(cluster)


@cache
def _software_of_program(python: str, command: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return the Python and packages of a program, or its path."""
    try:
        answer = library_answer((*command, "-c", _QUESTION, "numpy", *questions.packages()), os.environ)
    except RunError:
        return python, {}
    return answer["python"], answer["packages"]


@cache
def _is_on_this_machine(python: str) -> bool:
    return shutil.which(python) is not None


@cache
def _installed_versions(
    argv: tuple[str, ...], packages: tuple[str, ...], node: Node
) -> Mapping[str, str] | UnusablePython:
    """Return the versions of packages in a Python."""
    try:
        versions: dict[str, str] = installed_packages(argv, packages, node)["software"]
    except UnusablePython as error:
        return error
    return versions


def cpu_reason(cluster: Cluster, gpus: Sequence[str], framework_names: Collection[str] | None = None) -> str:
    """Return why runs are measured on the CPU in spite of GPUs.

    One framework that can train on a GPU suffices: a study of CPUs and GPUs side by side compares nothing. Libraries
    are imported until one sees a GPU, so this takes seconds for each. ``framework_names``: None for all.
    """
    obstacles = []
    if framework_names == [OWN_PROGRAM]:
        return ""
    if framework_names is None:
        framework_names = frameworks.names()
    for name in framework_names:
        obstacle = gpu_obstacle_here(cluster, name)
        if not obstacle:
            return ""
        obstacles.append(obstacle)
    reasons = "; ".join(dict.fromkeys(obstacles))
    counted_names = ", ".join(f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus))
    return f"this machine has {counted_names}, but runs are measured on its CPU: {reasons}"


def gpu_obstacle(framework: Framework, cluster: Cluster, wanted: int) -> str:
    """Return why a framework can't train on these GPUs, or nothing.

    Which GPUs there are elsewhere, a run asks its nodes. But a build without CUDA would hold them for nothing.
    """
    name = framework.name
    if cluster.is_this_machine:
        return gpu_obstacle_here(cluster, name, wanted)
    if launchers.load(cluster.launcher).uses_images:
        return ""
    question, python = gpu_question(name), cluster.python_for(name)
    command = _node_with(python, cluster).command(*cluster.container, python, *question.arguments)
    try:
        support = GpuSupport.of(library_answer(command, os.environ))
    except RunError:
        # It may need libraries that only the nodes have.
        return ""
    return question.obstacle(support, wanted=0)


def gpu_obstacle_here(cluster: Cluster, name: str, wanted: int = 1) -> str:
    """Return why a framework can't train on this machine's GPUs."""
    question, python = gpu_question(name), (*cluster.container, cluster.python_for(name))
    try:
        answer = gpu_answer(python, question, os.environ | cluster.environment)
    except RunError as error:
        return str(error)
    return question.obstacle(GpuSupport.of(answer), wanted)


def compiler_obstacle_here(configuration: Configuration, cluster: Cluster) -> str:
    """Return why the library can't compile here, or nothing."""
    name, compiler = configuration.framework, configuration.compiler
    if not (arguments := compiler_question(name, compiler)):
        return ""
    command = (*cluster.container, cluster.python_for(name), *arguments)
    try:
        obstacle = library_answer(command, os.environ | cluster.environment)
    except RunError as error:
        return str(error)
    if obstacle:
        return f"compiler {compiler}: {obstacle}"
    return ""
