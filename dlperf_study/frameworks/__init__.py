"""One file a strategy. The folder is the registry: a file's name is its name in the YAML.

A part offers ``FRAMEWORK``: its names, ``unsupported(configuration, cluster, version)``,
``job(configuration, cluster)`` (pure), and ``trainer(configuration)`` and perhaps ``server(configuration)``,
which import its library.
"""

from importlib import import_module
from pkgutil import iter_modules

from dlperf_study.errors import StudyFileError
from dlperf_study.frameworks._base import Framework

_SHARED = ("base", "common", "paddle_client", "paddle_common", "paddle_static", "torch_common")


def names() -> tuple[str, ...]:
    """Return the frameworks there are, in alphabetical order."""
    return tuple(sorted(module.name for module in iter_modules(__path__) if module.name not in _SHARED))


def load(name: str) -> Framework:
    """Return the framework called ``name``; its library is not imported."""
    if name not in names():
        raise StudyFileError(f"framework is {name!r}; the frameworks are {', '.join(names())}")
    framework: Framework = import_module(f"{__name__}.{name}").FRAMEWORK
    return framework
