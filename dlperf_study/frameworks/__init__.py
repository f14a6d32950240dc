"""One file a strategy. The folder is the registry: a file's name is its name in the YAML.

A part offers ``FRAMEWORK``: its names, ``unsupported(configuration, cluster, version)``,
``job(configuration, cluster)`` (pure), and ``trainer(configuration)`` and perhaps ``server(configuration)``,
which import its library.
"""

from importlib import import_module

from dlperf_study import registry
from dlperf_study.errors import StudyFileError
from dlperf_study.frameworks._base import Framework


def names() -> tuple[str, ...]:
    """Return the frameworks there are, in alphabetical order."""
    return registry.names(__name__)


def load(name: str) -> Framework:
    """Return the framework called ``name``; its library is not imported."""
    if name not in names():
        raise StudyFileError(registry.unknown("framework is", name, "frameworks", names()))
    framework: Framework = import_module(f"{__name__}.{name}").FRAMEWORK
    return framework
