"""The launchers: one file each. The folder is the registry: a file's name is its name in the cluster file.

A launcher's file provides ``LAUNCHER``, a :class:`dlperf_study.machines.launchers._base.Launcher`.
"""

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.registry import Registry
from dlperf_study.machines.launchers._base import Launcher

_LAUNCHERS = Registry[Launcher](__name__, "LAUNCHER", "launcher", StudyFileError)
names, load = _LAUNCHERS.names, _LAUNCHERS.load


def by_name() -> dict[str, Launcher]:
    """Return all launchers by name."""
    return {name: load(name) for name in names()}
