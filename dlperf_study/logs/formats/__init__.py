"""One file per format of log. The folder is the registry: the name of a file is the name of its format.

Each file provides ``FORMAT``: what the lines look like and what their numbers mean. It reads nothing itself.
"""

from functools import cache

from dlperf_study.errors import LogError
from dlperf_study.logs.format import Format
from dlperf_study.registry import Registry

_FORMATS = Registry[Format](__name__, "FORMAT", "format", LogError)
names, load = _FORMATS.names, _FORMATS.load


@cache
def all_formats() -> tuple[Format, ...]:
    """Return all formats."""
    return tuple(load(name) for name in names())
