"""Which configurations can run here, and with which version of the library."""

import shutil
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from dlperf_study import frameworks, launchers
from dlperf_study.errors import UnsupportedError
from dlperf_study.execution.names import check_names
from dlperf_study.frameworks.base import Framework
from dlperf_study.launchers.base import Place
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.configuration import Configuration

QUESTION_SECONDS = 30
#: The exit code of ssh when it did not get through.
UNREACHED = 255
_QUESTION = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"


def unsupported_here(configuration: Configuration, cluster: Cluster, source: str = "") -> str | None:
    """Return why this cluster's software can't run the configuration, or None.

    ``source`` is what messages name as the place of the configuration, if not its study.
    Raises StudyFileError for a name that nothing here bears: it is misspelt, and not unsupported.
    """
    check_names(configuration, cluster, source or f"study {configuration.study}")
    framework = frameworks.load(configuration.framework)
    return framework.unsupported(configuration, cluster, library_version(framework, cluster))


def require_support(configuration: Configuration, cluster: Cluster) -> None:
    """Raise UnsupportedError with the reason when the configuration can't run here."""
    reason = cluster.too_small_for(configuration) or unsupported_here(configuration, cluster)
    if reason:
        raise UnsupportedError(f"{configuration.identity}: {reason}")


def library_version(framework: Framework, cluster: Cluster) -> str | None:
    """Return the version of the framework's library in the Python the cluster names for it, or None.

    Those of the libraries beside it follow: ``0.28.1 with torch 2.13.0``.
    """
    python, place = _python(framework, cluster)
    versions = (_installed(python, distribution, place) for distribution in framework.distributions)
    found = next(filter(None, versions), None)
    beside = [f"{name} {_installed(python, name, place)}" for name in framework.beside]
    return " with ".join([found, *beside]) if found else None


def _python(framework: Framework, cluster: Cluster) -> tuple[tuple[str, ...], Place]:
    """Return the argv of the Python to ask, and where: on this machine if it is here, else where the launcher says.

    That nodes have the same versions is seen to when a run starts; so a plan or a report needs no node to answer.
    """
    python = cluster.planning_python_for(framework.name)
    if shutil.which(python):
        return (python,), Place()
    return (*cluster.container, python), launchers.load(cluster.launcher).asked(cluster)


@cache
def _installed(python: tuple[str, ...], distribution: str, place: Place) -> str | None:
    if python != (sys.executable,):
        return _ask(python, distribution, place)
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _ask(python: tuple[str, ...], distribution: str, place: Place) -> str | None:
    """Ask another Python, without importing the library there."""
    question = place.command(*python, "-c", _QUESTION, distribution)
    try:
        answer = subprocess.run(question, capture_output=True, text=True, timeout=QUESTION_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"the cluster file names {' '.join(python)}, which does not run: {error}") from error
    if place.reach and answer.returncode == UNREACHED:
        said = answer.stderr.strip().splitlines()[-1:] or [f"{place.reach[0]} exited with code {UNREACHED}"]
        raise UnsupportedError(f"{place.name} can't be asked for its libraries: {said[0]}")
    return answer.stdout.strip() or None
