"""One file a strategy. The folder is the registry: a file's name is its name in the YAML.

A part provides ``FRAMEWORK``: its names, ``obstacles(configuration, cluster, version)``,
``job(configuration, cluster)`` (pure), and ``trainer(configuration)`` and perhaps ``server(configuration)``,
which import its library.
"""

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.registry import Registry
from dlperf_study.training.frameworks._base import Framework

_FRAMEWORKS = Registry[Framework](__name__, "FRAMEWORK", "framework", StudyFileError)
names, load = _FRAMEWORKS.names, _FRAMEWORKS.load


def all_frameworks() -> tuple[Framework, ...]:
    """Return every framework, in alphabetical order of their names."""
    return tuple(map(load, names()))
