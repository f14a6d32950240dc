"""The sequence of samples that a rank trains on: every source that reads an image dataset delivers this one.

All ranks together pass over the set again and again, each time in another random order. Position ``p`` of this common
sequence belongs to replica ``p % replicas``. Order, crop and flip follow from the seed and the position alone, whatever
process computes them. Crop and flip are those that are usual for ImageNet, and are used for CIFAR-10 too.
"""

import math
import os
from functools import cache
from pathlib import Path
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders._base import Batch
from dlperf_study.training.image_datasets import open_image_dataset
from dlperf_study.training.image_datasets._base import FOLDER_VARIABLE, ImageDataset

#: The part of the image's area that a crop has, and its ratio of width to height.
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
#: How many random crops are tried before the largest one in the centre is taken.
TRIES = 10
#: Mean and standard deviation of ImageNet's colours, relative to the largest value of a pixel.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LARGEST_VALUE = 255

Box = tuple[float, float, float, float]


def augmented(image: Any, size: int, generator: Any) -> Any:
    """Return a random crop of an image: uint8 [size, size, 3]."""
    import numpy as np
    from PIL.Image import Resampling, Transpose

    box, is_mirrored = random_draws(image.width, image.height, generator)
    scaled = image.resize((size, size), Resampling.BILINEAR, box)
    # A mirrored view of the array would cost five times as much to copy.
    return np.asarray(scaled.transpose(Transpose.FLIP_LEFT_RIGHT) if is_mirrored else scaled)


def normalise(pixels: Any, out: Any) -> None:
    """Write 8-bit pixels [S, S, 3], normalised, to ``out``."""
    import numpy as np

    for channel, (scale, offset) in enumerate(normalisation()):
        np.multiply(pixels[..., channel], scale, out=out[channel], casting="unsafe")
        out[channel] += offset


def random_draws(width: int, height: int, generator: Any) -> tuple[Box, bool]:
    """Return the box that is cut out, and whether it is mirrored."""
    return random_box(width, height, generator), bool(generator.random() < 0.5)


def random_box(width: int, height: int, generator: Any) -> Box:
    """Return left, top, right and bottom of a random part."""
    for _ in range(TRIES):
        area = width * height * generator.uniform(*AREA)
        ratio = math.exp(generator.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        part_width, part_height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < part_width <= width and 0 < part_height <= height:
            left = int(generator.integers(0, width - part_width + 1))
            top = int(generator.integers(0, height - part_height + 1))
            return left, top, left + part_width, top + part_height
    return _central_box(width, height)


def _central_box(width: int, height: int) -> Box:
    """Return the largest allowed part in the centre."""
    part_width, part_height = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    left, top = (width - part_width) // 2, (height - part_height) // 2
    return left, top, left + part_width, top + part_height


@cache
def normalisation() -> list[tuple[Any, Any]]:
    """Return scale and offset of each channel, for values to 255."""
    import numpy as np

    pairs = zip(MEAN, DEVIATION, strict=True)
    return [(np.float32(1 / (LARGEST_VALUE * deviation)), np.float32(-mean / deviation)) for mean, deviation in pairs]


#: What the random numbers are for; the same seed gives each purpose numbers of its own.
ORDER, CROP = 0, 1


class Samples:
    """The samples of a set by their position, scaled to ``image_size`` x ``image_size``."""

    def __init__(self, image_dataset: ImageDataset, image_size: int, seed: int) -> None:
        self.image_dataset = image_dataset
        self.size, self._seed = image_size, seed
        # In one variable: threads may ask for samples of two passes at once.
        self._order: tuple[int, Any] = (-1, ())

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        """Return image and label; raises ImageDatasetError for a broken one."""
        import numpy as np

        image = np.empty((3, self.size, self.size), dtype=np.float32)
        pixels, label = self._pixels(position)
        normalise(pixels, image)
        return image, label

    def batch(self, positions: range) -> Batch:
        """Return images [N, 3, S, S] float32 and labels [N] int64."""
        import numpy as np

        images = np.empty((len(positions), 3, self.size, self.size), dtype=np.float32)
        labels = np.empty(len(positions), dtype=np.int64)
        for row, position in enumerate(positions):
            pixels, labels[row] = self._pixels(position)
            normalise(pixels, images[row])
        return images, labels

    def pixel_batch(self, positions: range) -> Batch:
        """Return pixels [N, S, S, 3] uint8 and labels [N] int64."""
        import numpy as np

        batch = np.empty((len(positions), self.size, self.size, 3), dtype=np.uint8)
        labels = np.empty(len(positions), dtype=np.int64)
        for row, position in enumerate(positions):
            batch[row], labels[row] = self._pixels(position)
        return batch, labels

    def _pixels(self, position: int) -> tuple[Any, Any]:
        """Return pixels [S, S, 3] uint8 and label."""
        index = self.index(position)
        pixels = augmented(self.image_dataset.image(index), self.size, self._generator(position))
        return pixels, self.image_dataset.labels[index]

    def draws(self, position: int, width: int, height: int) -> tuple[Any, Any]:
        """Return the box [4] of a position, and its mirroring."""
        import numpy as np

        box, is_mirrored = random_draws(width, height, self._generator(position))
        return np.array(box, dtype=np.float64), np.bool_(is_mirrored)

    def _generator(self, position: int) -> Any:
        import numpy as np

        return np.random.default_rng((self._seed, CROP, position))

    def index(self, position: int) -> int:
        """Return which image is at a position, by its pass."""
        import numpy as np

        pass_number, offset = divmod(position, len(self.image_dataset))
        pass_of_order, order = self._order
        if pass_of_order != pass_number:
            generator = np.random.default_rng((self._seed, ORDER, pass_number))
            order = generator.permutation(len(self.image_dataset))
            self._order = pass_number, order
        return int(order[offset])


def image_dataset_of_this_process() -> ImageDataset:
    """Return the image dataset of this process; raises ImageDatasetError."""
    return open_image_dataset(Path(os.environ[FOLDER_VARIABLE]))


def configured_samples(configuration: Configuration) -> Samples:
    """Return the samples of this process's image dataset."""
    return Samples(image_dataset_of_this_process(), configuration.image_size, configuration.seed)
