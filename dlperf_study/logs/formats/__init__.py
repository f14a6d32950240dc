"""One file a format of log. The folder is the registry: a file's name is the name of the format.

A part offers ``FORMAT``: what its lines look like and what their numbers mean. It reads nothing itself.
"""

from functools import cache
from importlib import import_module

from dlperf_study import registry
from dlperf_study.errors import LogError
from dlperf_study.logs.format import Format


def names() -> tuple[str, ...]:
    """Return the formats there are, in alphabetical order."""
    return registry.names(__name__)


def load(name: str) -> Format:
    """Return the format called ``name``; raises LogError when there is none."""
    if name not in names():
        raise LogError(registry.unknown("format of logs is", name, "formats", names()))
    found: Format = import_module(f"{__name__}.{name}").FORMAT
    return found


@cache
def every() -> tuple[Format, ...]:
    """Return all formats."""
    return tuple(load(name) for name in names())
