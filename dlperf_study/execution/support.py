"""Which configurations can run here, and with which version of the library."""

import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from dlperf_study import frameworks
from dlperf_study.errors import UnsupportedError
from dlperf_study.execution.names import check_names
from dlperf_study.frameworks.base import Framework
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.configuration import Configuration

QUESTION_SECONDS = 30
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
    python = cluster.python_for(framework.name)
    versions = (_installed(python, distribution) for distribution in framework.distributions)
    found = next(filter(None, versions), None)
    beside = [f"{name} {_installed(python, name)}" for name in framework.beside]
    return " with ".join([found, *beside]) if found else None


@cache
def _installed(python: str, distribution: str) -> str | None:
    if python != sys.executable:
        return _ask(python, distribution)
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _ask(python: str, distribution: str) -> str | None:
    """Ask another Python, without importing the library there."""
    try:
        answer = subprocess.run(
            [python, "-c", _QUESTION, distribution], capture_output=True, text=True, timeout=QUESTION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"the cluster file names {python}, which does not run: {error}") from error
    return answer.stdout.strip() or None
