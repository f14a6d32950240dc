"""One batch of random values, of its own for each replica, that stays on the device: nothing is read, made or moved.

Of sequences it is the replica's part of the first global batch.
"""

from itertools import repeat
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parameter import IMAGES, SEQUENCES
from dlperf_study.training.data_loaders._base import Batch, Consumer, DataLoader, RequestedBatches, random_generator
from dlperf_study.training.data_loaders._sequences import made_up_tokens, sequence_batches


def open_batch(configuration: Configuration, consumer: Consumer) -> RequestedBatches:
    """Return one batch again and again."""
    if configuration.samples == SEQUENCES:
        batch = next(sequence_batches(configuration, consumer, made_up_tokens(configuration)))
    else:
        batch = random_batch(configuration, random_generator(configuration, consumer.replica))
    return RequestedBatches(repeat(batch))


def random_batch(configuration: Configuration, generator: Any) -> Batch:
    """Return normally distributed images [N, 3, S, S] float32 and labels [N] int64."""
    # Random values and not zeros: zeros lead to denormals and constant activations, which are faster on some devices.
    import numpy as np

    size, count = configuration.image_size, configuration.batch_per_device
    images = generator.standard_normal((count, 3, size, size), dtype=np.float32)
    return images, generator.integers(0, configuration.classes, count, dtype=np.int64)


DATA_LOADER = DataLoader(
    name="synthetic_device",
    display_name="synthetic data on the device",
    open=open_batch,
    is_fixed=True,
    samples=(IMAGES, SEQUENCES),
)
