"""Labelled images on disk, one file a format; a folder is opened in whatever format it has them.

The folder of this file is the registry. A part provides ``FORMAT``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.core.registry import Registry
from dlperf_study.training.image_datasets._base import ImageDataset, ImageDatasetFormat

#: How many images are decoded before a study; half a minute at most.
MOST_DECODED = 10_000
_FORMATS = Registry[ImageDatasetFormat](__name__, "FORMAT", "format of images", ImageDatasetError)
names, load = _FORMATS.names, _FORMATS.load


def all_formats() -> tuple[ImageDatasetFormat, ...]:
    """Return every format, in alphabetical order of their names."""
    return tuple(map(load, names()))


def open_image_dataset(path: Path) -> ImageDataset:
    """Return the images of a folder; raises ImageDatasetError."""
    with _naming(path):
        return image_format(path).open(path)


def class_names(path: Path) -> list[str]:
    """Return the classes without reading all; raises ImageDatasetError."""
    with _naming(path):
        return image_format(path).class_names(path)


def image_format(path: Path) -> ImageDatasetFormat:
    """Return the format of a folder; raises ImageDatasetError."""
    if not path.exists():
        raise ImageDatasetError(f"there is no folder {path}")
    if not path.is_dir():
        raise ImageDatasetError(f"{path} is a file; unpack it, and name the folder")
    for image_format in all_formats():
        if image_format.is_in(path):
            return image_format
    titles = " nor ".join(image_format.title for image_format in all_formats())
    raise ImageDatasetError(f"{path} has neither {titles}")


@cache
def number_of_classes(folder: str) -> int:
    """Return how many classes a folder has, looking at every file."""
    return len(open_image_dataset(Path(folder)).classes)


def require_classes(path: Path, available: int, classes: int) -> None:
    """Raise ImageDatasetError for another number of classes."""
    if available != classes:
        remedy = f"give classes: {available}, or another image_dataset"
        raise ImageDatasetError(f"{path} has {available} classes, but classes is {classes}; {remedy}")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an OSError into an ImageDatasetError with the file."""
    try:
        yield
    except OSError as error:
        raise ImageDatasetError(f"{error.filename or path}: {error.strerror or error}") from error


def describe(path: Path) -> str:
    """Return one line about a folder; decode some images; raises ImageDatasetError."""
    image_dataset, title = open_image_dataset(path), image_format(path).title
    decoded = decode_some(image_dataset, MOST_DECODED)
    return f"{image_dataset.path}: {title}, {image_dataset.summary}, {decoded} of them decoded"


def decode_some(image_dataset: ImageDataset, at_most: int) -> int:
    """Decode so many images, evenly spaced; return how many; raises ImageDatasetError."""
    count = min(at_most, len(image_dataset))
    for position in range(count):
        image_dataset.image(position * len(image_dataset) // count)
    return count
