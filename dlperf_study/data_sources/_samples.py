"""The sequence of samples that a rank trains on: every source that reads an image set delivers this one.

All ranks together pass over the set again and again, each time in another random order. Position ``p`` of this common
sequence belongs to rank ``p % world_size``. Order, crop and flip follow from the seed and the position alone, whatever
process computes them.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dlperf_study.data_sources._augmentation import augmented, normalise, random_draws
from dlperf_study.data_sources._base import Batch, Consumer
from dlperf_study.image_sets.image_set import FOLDER_VARIABLE, ImageSet
from dlperf_study.image_sets.opening import open_image_set
from dlperf_study.study.configuration import Configuration

#: What the random numbers are for; the same seed gives each purpose numbers of its own.
ORDER, CROP = 0, 1


class Samples:
    """The samples of a set by their position, scaled to ``image_size`` x ``image_size``."""

    def __init__(self, image_set: ImageSet, image_size: int, seed: int) -> None:
        self.image_set = image_set
        self.size, self._seed = image_size, seed
        # In one variable: threads may ask for samples of two passes at once.
        self._order: tuple[int, Any] = (-1, ())

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        """Return image [3, S, S] float32 and label [] int64; raises ImageSetError, with the file, for a broken one."""
        import numpy as np

        image = np.empty((3, self.size, self.size), dtype=np.float32)
        pixels, label = self._pixels(position)
        normalise(pixels, image)
        return image, label

    def batch(self, positions: range) -> Batch:
        """Return images [N, 3, S, S] float32 and labels [N] int64; raises ImageSetError as for one sample."""
        import numpy as np

        images = np.empty((len(positions), 3, self.size, self.size), dtype=np.float32)
        labels = np.empty(len(positions), dtype=np.int64)
        for row, position in enumerate(positions):
            pixels, labels[row] = self._pixels(position)
            normalise(pixels, images[row])
        return images, labels

    def pixel_batch(self, positions: range) -> Batch:
        """Return pixels [N, S, S, 3] uint8, not yet normalised, and labels [N] int64; raises ImageSetError too."""
        import numpy as np

        batch = np.empty((len(positions), self.size, self.size, 3), dtype=np.uint8)
        labels = np.empty(len(positions), dtype=np.int64)
        for row, position in enumerate(positions):
            batch[row], labels[row] = self._pixels(position)
        return batch, labels

    def _pixels(self, position: int) -> tuple[Any, Any]:
        """Return the pixels of a position [S, S, 3] uint8, and the label."""
        index = self.index(position)
        pixels = augmented(self.image_set.image(index), self.size, self._generator(position))
        return pixels, self.image_set.labels[index]

    def draws(self, position: int, width: int, height: int) -> tuple[Any, Any]:
        """Return which box [4] of the image at a position is cut out, and whether it is mirrored."""
        import numpy as np

        box, is_mirrored = random_draws(width, height, self._generator(position))
        return np.array(box, dtype=np.float64), np.bool_(is_mirrored)

    def _generator(self, position: int) -> Any:
        import numpy as np

        return np.random.default_rng((self._seed, CROP, position))

    def index(self, position: int) -> int:
        """Return which image of the set is at a position: every pass has a random order of its own."""
        import numpy as np

        pass_number, offset = divmod(position, len(self.image_set))
        pass_of_order, order = self._order
        if pass_of_order != pass_number:
            generator = np.random.default_rng((self._seed, ORDER, pass_number))
            order = generator.permutation(len(self.image_set))
            self._order = pass_number, order
        return int(order[offset])


def image_set_of_this_process() -> ImageSet:
    """Return the image set whose folder the environment has; raises ImageSetError for the first thing wrong with it."""
    return open_image_set(Path(os.environ[FOLDER_VARIABLE]))


def samples_of(configuration: Configuration) -> Samples:
    """Return the samples of this process's image set in the size and with the seed of a configuration."""
    return Samples(image_set_of_this_process(), configuration.image_size, configuration.seed)


def batch_positions(configuration: Configuration, consumer: Consumer) -> Iterator[range]:
    """Yield, without end, the positions of the successive batches of a rank."""
    step = configuration.batch_per_device * consumer.world_size
    first = consumer.rank
    while True:
        yield range(first, first + step, consumer.world_size)
        first += step
