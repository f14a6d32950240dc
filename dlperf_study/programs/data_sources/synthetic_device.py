"""One batch of random values, of its own for each replica, that stays on the device: nothing is read, made or moved."""

from dlperf_study.programs.data_sources._base import Batch, Consumer, DataSource
from dlperf_study.programs.data_sources._host_batches import random_batch, random_generator
from dlperf_study.study.configuration import Configuration


class FixedBatch:
    """The same batch always."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        self._batch = random_batch(configuration, random_generator(configuration, consumer.replica))

    def next(self) -> Batch:
        """Return the batch."""
        return self._batch

    def close(self) -> None:
        """Do nothing: there is neither a thread nor a process."""


DATA_SOURCE = DataSource(
    name="synthetic_device", display_name="synthetic, on the device", open=FixedBatch, is_fixed=True
)
