"""Open a folder of labelled images, in whatever format it has them, and find out whether they can be decoded."""

from pathlib import Path

from dlperf_study.errors import ImageSetError
from dlperf_study.image_sets import formats
from dlperf_study.image_sets.image_set import ImageSet

#: How many images are decoded before a study; half a minute at most.
MOST_DECODED = 10_000


def open_image_set(path: Path) -> ImageSet:
    """Return the images for training of a folder; raises ImageSetError for the first thing that is wrong with it."""
    if not path.exists():
        raise ImageSetError(f"there is no folder {path}")
    if not path.is_dir():
        raise ImageSetError(f"{path} is a file; unpack it, and name the folder")
    try:
        for image_format in formats.all_formats():
            if image_format.is_in(path):
                return image_format.open(path)
    except OSError as error:
        raise ImageSetError(f"{error.filename or path}: {error.strerror or error}") from error
    titles = " nor ".join(image_format.title for image_format in formats.all_formats())
    raise ImageSetError(f"{path} has neither {titles}")


def describe(path: Path) -> str:
    """Return what a folder of images has, in one line; some of them are decoded.

    Raises ImageSetError for the first thing that is wrong with it.
    """
    image_set = open_image_set(path)
    title = formats.load(image_set.format_name).title
    decoded = decode_some(image_set, MOST_DECODED)
    return f"{image_set.path}: {title}, {image_set.summary}, {decoded} of them decoded"


def decode_some(image_set: ImageSet, at_most: int) -> int:
    """Decode as many images as that, evenly spaced, or all if they are fewer; return how many.

    Raises ImageSetError for the first that can't be decoded.
    """
    count = min(at_most, len(image_set))
    for position in range(count):
        image_set.image(position * len(image_set) // count)
    return count
