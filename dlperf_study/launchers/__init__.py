"""One file a place to run. The folder is the registry: a file's name is its name in the cluster file.

A part offers ``LAUNCHER``, a :class:`dlperf_study.launchers._base.Launcher`: ``render`` is pure, ``execute`` runs.
"""

from importlib import import_module
from pkgutil import iter_modules

from dlperf_study.errors import StudyFileError
from dlperf_study.launchers._base import Launcher
from dlperf_study.study.strict_yaml import closest

_SHARED = (
    *("alike", "base", "channel", "conversation", "coordinator", "folders", "guard", "guards", "messages", "node"),
    *("node_load", "probe", "remote_shell", "rendering"),
)


def names() -> tuple[str, ...]:
    """Return the launchers there are, in alphabetical order."""
    return tuple(sorted(module.name for module in iter_modules(__path__) if _is_part(module.name)))


def load(name: str, source: str = "cluster file") -> Launcher:
    """Return the launcher called ``name``; ``source`` is the file that a message about it names."""
    if name not in names():
        choices = ", ".join(names())
        raise StudyFileError(f"{source}: launcher is {name!r}; {closest(name, names())}the launchers are {choices}")
    launcher: Launcher = import_module(f"{__name__}.{name}").LAUNCHER
    return launcher


def _is_part(name: str) -> bool:
    return not name.startswith("_") and name not in _SHARED
