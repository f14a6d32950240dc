"""The sequence of samples that a rank trains on: every source that reads an image set delivers this one.

All ranks together pass over the set again and again, each time in another random order. Position ``p`` of this common
sequence belongs to rank ``p % world_size``. Order, crop and flip follow from the seed and the position alone, whatever
process computes them.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dlperf_study.data_sources._augmentation import augmented
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
        self._size, self._seed = image_size, seed
        self._pass = -1
        self._order: Any = ()

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        """Return image [3, S, S] float32 and label [] int64; raises ImageSetError, with the file, for a broken one."""
        import numpy as np

        image = np.empty((3, self._size, self._size), dtype=np.float32)
        return image, self._write(position, image)

    def batch(self, positions: range) -> Batch:
        """Return images [N, 3, S, S] float32 and labels [N] int64; raises ImageSetError as for one sample."""
        import numpy as np

        images = np.empty((len(positions), 3, self._size, self._size), dtype=np.float32)
        labels = np.empty(len(positions), dtype=np.int64)
        for row, position in enumerate(positions):
            labels[row] = self._write(position, images[row])
        return images, labels

    def _write(self, position: int, image: Any) -> Any:
        """Write the image of a position to an array; return its label."""
        import numpy as np

        index = self._index(position)
        generator = np.random.default_rng((self._seed, CROP, position))
        augmented(self.image_set.image(index), self._size, generator, image)
        return self.image_set.labels[index]

    def _index(self, position: int) -> int:
        """Return which image of the set is at a position: every pass has a random order of its own."""
        import numpy as np

        pass_number, offset = divmod(position, len(self.image_set))
        if pass_number != self._pass:
            generator = np.random.default_rng((self._seed, ORDER, pass_number))
            self._pass, self._order = pass_number, generator.permutation(len(self.image_set))
        return int(self._order[offset])


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
