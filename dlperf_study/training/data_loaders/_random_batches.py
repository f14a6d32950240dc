"""Random values in the place of images: no file is read."""

from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders._base import Batch


def random_generator(configuration: Configuration, rank: int) -> Any:
    """Return numpy's generator of a rank: with the same seed, each rank draws different values."""
    import numpy as np

    return np.random.default_rng([configuration.seed, rank])


def random_batch(configuration: Configuration, generator: Any) -> Batch:
    """Return normally distributed images [N, 3, S, S] float32 and labels [N] int64.

    Random values and not zeros: zeros lead to denormals and constant activations, which are faster on some devices.
    """
    import numpy as np

    size, count = configuration.image_size, configuration.batch_per_device
    images = generator.standard_normal((count, 3, size, size), dtype=np.float32)
    return images, generator.integers(0, configuration.classes, count, dtype=np.int64)
