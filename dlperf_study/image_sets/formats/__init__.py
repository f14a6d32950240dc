"""How labelled images are kept on disk, one file a format. The folder is the registry; a part provides ``FORMAT``."""

from dlperf_study.errors import ImageSetError
from dlperf_study.image_sets.image_set import ImageSetFormat
from dlperf_study.registry import Registry

_FORMATS = Registry[ImageSetFormat](__name__, "FORMAT", "format of images", ImageSetError)
names, load = _FORMATS.names, _FORMATS.load


def all_formats() -> tuple[ImageSetFormat, ...]:
    """Return every format, in alphabetical order of their names."""
    return tuple(map(load, names()))
