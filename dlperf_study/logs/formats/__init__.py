"""Log formats, one file for related programs, with ``FORMAT`` or ``FORMATS``.

A format declares lines and the meaning of their numbers; it reads nothing itself.
"""

from dlperf_study.core.errors import LogError
from dlperf_study.core.part_search import cached_by_parts
from dlperf_study.core.registry import part_modules
from dlperf_study.core.wording import unknown_name
from dlperf_study.logs.format import Format


def all_formats() -> tuple[Format, ...]:
    """Return all formats, in the order of their names."""
    return tuple(_formats_by_name().values())


def names() -> tuple[str, ...]:
    """Return the names of all formats, in alphabetical order."""
    return tuple(_formats_by_name())


def load(name: str) -> Format:
    """Return the format of a name; raises LogError for an unknown one."""
    formats = _formats_by_name()
    if name not in formats:
        raise LogError(unknown_name("format is", name, "formats", tuple(formats)))
    return formats[name]


@cached_by_parts
def _formats_by_name() -> dict[str, Format]:
    """Return all formats, also of users; raises LogError for repeated names."""
    formats: dict[str, Format] = {}
    for location, module in part_modules(__name__, "file of formats", LogError):
        provided = getattr(module, "FORMATS", None) or filter(None, (getattr(module, "FORMAT", None),))
        formats_of_file = tuple(provided)
        if not formats_of_file:
            raise LogError(f"{location.source}: it has no FORMAT, which declares a format")
        for format_ in formats_of_file:
            if format_.name in formats:
                raise LogError(f"{location.source}: there is a format {format_.name!r} already")
            formats[format_.name] = format_
    return dict(sorted(formats.items()))
