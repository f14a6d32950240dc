"""One file a place to run. The folder is the registry: a file's name is its name in the cluster file.

A part offers ``LAUNCHER``, a :class:`dlperf_study.launchers._base.Launcher`: ``render`` is pure, ``execute`` runs.
"""

from importlib import import_module

from dlperf_study import registry
from dlperf_study.errors import StudyFileError
from dlperf_study.launchers._base import Launcher


def names() -> tuple[str, ...]:
    """Return the launchers there are, in alphabetical order."""
    return registry.names(__name__)


def load(name: str, source: str = "cluster file") -> Launcher:
    """Return the launcher called ``name``; ``source`` is the file that a message about it names."""
    if name not in names():
        raise StudyFileError(registry.unknown(f"{source}: launcher is", name, "launchers", names()))
    launcher: Launcher = import_module(f"{__name__}.{name}").LAUNCHER
    return launcher
