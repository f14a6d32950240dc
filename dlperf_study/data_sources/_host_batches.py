"""The samples and batches that Python makes on the host, whatever carries them to the step."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from dlperf_study.data_sources import _augmentation, _made_up_samples
from dlperf_study.data_sources._base import Batch, Consumer
from dlperf_study.data_sources._made_up_samples import MadeUpSamples
from dlperf_study.data_sources._samples import Samples, batch_positions, samples_of
from dlperf_study.study.configuration import PARAMETERS, Configuration

NO_IMAGES = PARAMETERS["image_set"].default


def host_samples(configuration: Configuration) -> Samples | MadeUpSamples:
    """Return the samples of the image set of a configuration, or made-up ones if it names none."""
    return MadeUpSamples(configuration) if configuration.image_set == NO_IMAGES else samples_of(configuration)


def host_batches(configuration: Configuration, consumer: Consumer) -> Generator[Batch, None, None]:
    """Yield, without end, the batches of a rank: images float32 [N, 3, S, S] and labels int64 [N].

    Each batch has memory of its own.
    """
    samples = host_samples(configuration)
    for positions in batch_positions(configuration, consumer):
        yield samples.batch(positions)


@dataclass(frozen=True)
class PixelFormat:
    """The shape of an image's 8-bit pixels, and what writes them, normalised, to an image, float32 [3, S, S]."""

    shape: tuple[int, int, int]
    normalise: Callable[[Any, Any], None]


def pixel_format(configuration: Configuration) -> PixelFormat:
    """Return the format of the pixels of ``pixel_batches``: files have the three colours of a pixel side by side."""
    size = configuration.image_size
    if configuration.image_set == NO_IMAGES:
        return PixelFormat((3, size, size), _made_up_samples.normalise)
    return PixelFormat((size, size, 3), _augmentation.normalise)


def pixel_batches(configuration: Configuration, consumer: Consumer) -> Generator[Batch, None, None]:
    """Yield the batches of ``host_batches`` before they are normalised: pixels uint8, and labels int64 [N].

    They have a quarter of the bytes.
    """
    samples = host_samples(configuration)
    for positions in batch_positions(configuration, consumer):
        yield samples.pixel_batch(positions)
