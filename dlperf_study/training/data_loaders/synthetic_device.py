"""One batch of random values, of its own for each replica, that stays on the device: nothing is read, made or moved.

Of sequences it is the replica's part of the first global batch.
"""

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parameter import IMAGES, SEQUENCES
from dlperf_study.training.data_loaders._base import Batch, Consumer, DataLoader
from dlperf_study.training.data_loaders._random_batches import random_batch, random_generator
from dlperf_study.training.data_loaders._sequences import made_up_tokens, sequence_batches


class FixedBatch:
    """The same batch always."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        if configuration.samples == SEQUENCES:
            self._batch = next(sequence_batches(configuration, consumer, made_up_tokens(configuration)))
        else:
            self._batch = random_batch(configuration, random_generator(configuration, consumer.replica))

    def next(self) -> Batch:
        return self._batch

    def close(self) -> None:
        """Do nothing: there is neither a thread nor a process."""


DATA_LOADER = DataLoader(
    name="synthetic_device",
    display_name="synthetic data on the device",
    open=FixedBatch,
    is_fixed=True,
    samples=(IMAGES, SEQUENCES),
)
