"""One file a place to run. The folder is the registry: a file's name is its name in the cluster file.

A part offers ``LAUNCHER``, a :class:`dlperf_study.launchers._base.Launcher`: ``render`` is pure, ``execute`` runs.
"""

from dlperf_study.errors import StudyFileError
from dlperf_study.launchers._base import Launcher
from dlperf_study.registry import Registry

_LAUNCHERS = Registry[Launcher](__name__, "LAUNCHER", "launcher", StudyFileError)
names, load = _LAUNCHERS.names, _LAUNCHERS.load
