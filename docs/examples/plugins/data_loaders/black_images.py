"""Black images, a new batch for every step."""

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders._base import Batch, Consumer, DataLoader


class BlackImages:
    """Batches of zeros."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        self._count, self._size = configuration.batch_per_device, configuration.image_size

    def next(self) -> Batch:
        """Make the next batch."""
        import numpy as np

        images = np.zeros((self._count, 3, self._size, self._size), dtype=np.float32)
        return images, np.zeros(self._count, dtype=np.int64)

    def close(self) -> None:
        """Do nothing: there is neither a thread nor a process."""


DATA_LOADER = DataLoader(name="black_images", display_name="black images", open=BlackImages)
