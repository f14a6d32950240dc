"""The batches that steps train on: those of the data loader, on the device of the rank."""

from collections.abc import Callable
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._base import batch_consumer
from dlperf_study.training.frameworks._base import Trainer


class Feed:
    """The steps of a trainer, each with the batch that is on its device.

    ``fetch`` waits for the next batch and puts it there. It is None if the source has one batch only, which is there
    from the start: then no step waits. At most ``batches_ahead`` are finished before they are fetched.
    """

    fetch: Callable[[], None] | None

    def __init__(self, configuration: Configuration, trainer: Trainer) -> None:
        source = data_loaders.load(configuration.data_loader)
        consumer = batch_consumer(configuration, trainer.rank, trainer.tensor_library)
        self._trainer, self._batch = trainer, None
        self.batches_ahead = source.batches_ahead(configuration)
        self._batches = source.open(configuration, consumer)
        self.fetch = self._fetch
        if source.is_fixed:
            self._fetch()
            self.fetch = None

    def first_step(self) -> str:
        """Do the first step; return its number format."""
        if self.fetch:
            self.fetch()
        return self._trainer.first_step(self._batch)

    def train(self) -> Any:
        """Do a step with the current batch; return the loss."""
        return self._trainer.train_step(self._batch)

    def compute(self) -> Any:
        """Do a compute-only step with the current batch; return the loss."""
        return self._trainer.computation_step(self._batch)

    def close(self) -> None:
        """End what makes the batches."""
        self._batches.close()

    def _fetch(self) -> None:
        arrays = self._batches.next()
        # The device has memory for one batch.
        self._batch = None
        self._batch = self._trainer.transfer_batch(*arrays)
