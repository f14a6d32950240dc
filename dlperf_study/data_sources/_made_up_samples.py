"""Samples that are made up once and kept in memory: what Python does with a small data set, without files.

Random images of 8-bit integers, as files have them, are converted to floats each time they are taken. Every source that
takes them delivers the same samples for the same seed.
"""

from typing import Any

from dlperf_study.data_sources._base import Batch
from dlperf_study.study.configuration import Configuration

MOST_IMAGES, MOST_BYTES = 1024, 64 * 2**20
#: Of the values 0 to 255, if all are as frequent.
MEAN, DEVIATION = 127.5, 73.9


class MadeUpSamples:
    """Samples by their position in a sequence without end, which repeats itself."""

    def __init__(self, configuration: Configuration) -> None:
        import numpy as np

        generator = np.random.default_rng(configuration.seed)
        size = configuration.image_size
        count = max(1, min(MOST_IMAGES, MOST_BYTES // (3 * size**2)))
        self._images = generator.integers(0, 256, (count, 3, size, size), dtype=np.uint8)
        self._labels = generator.integers(0, configuration.classes, count, dtype=np.int64)

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        """Return image [3, S, S] float32 of mean 0 and variance 1, and label [] int64."""
        import numpy as np

        index = position % len(self._labels)
        pixels = self._images[index]
        image = np.empty(pixels.shape, dtype=np.float32)
        normalise(pixels, image)
        return image, self._labels[index]

    def batch(self, positions: range) -> Batch:
        """Return images [N, 3, S, S] float32 and labels [N] int64."""
        import numpy as np

        pixels, labels = self.pixel_batch(positions)
        images = np.empty(pixels.shape, dtype=np.float32)
        normalise(pixels, images)
        return images, labels

    def pixel_batch(self, positions: range) -> Batch:
        """Return pixels [N, 3, S, S] uint8, not yet normalised, and labels [N] int64."""
        import numpy as np

        indices = np.asarray(positions) % len(self._labels)
        return self._images[indices], self._labels[indices]


def normalise(pixels: Any, out: Any) -> None:
    """Write 8-bit values to ``out``, float32 of the same shape, with mean 0 and variance 1."""
    import numpy as np

    np.copyto(out, pixels)
    out -= np.float32(MEAN)
    out /= np.float32(DEVIATION)
