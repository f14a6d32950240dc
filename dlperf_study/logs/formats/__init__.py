"""One file a format of log. The folder is the registry: a file's name is the name of the format.

A part offers ``FORMAT``: what its lines look like and what their numbers mean. It reads nothing itself.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from dlperf_study.errors import LogError
from dlperf_study.logs.format import Format


def names() -> tuple[str, ...]:
    """Return the formats there are, in alphabetical order."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def load(name: str) -> Format:
    """Return the format called ``name``; raises LogError when there is none."""
    if name not in names():
        raise LogError(f"format of logs is {name!r}; the formats are {', '.join(names())}")
    found: Format = import_module(f"{__name__}.{name}").FORMAT
    return found


@cache
def every() -> tuple[Format, ...]:
    """Return all formats."""
    return tuple(load(name) for name in names())
