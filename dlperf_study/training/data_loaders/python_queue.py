"""A Python generator in a thread of the training process, and a queue between it and the steps.

The thread makes batches while the steps compute, as far as Python's global lock and the cores of the rank allow. The
samples are made up, or images of an image dataset.
"""

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders._base import Consumer, DataLoader
from dlperf_study.training.data_loaders._host_batches import QueuedBatches, host_batches

PREFETCH_BATCHES = 2


def open_queue(configuration: Configuration, consumer: Consumer) -> QueuedBatches:
    """Start the thread of a rank."""
    return QueuedBatches(DATA_LOADER.name, host_batches(configuration, consumer), DATA_LOADER.prefetch(configuration))


def batches_ahead(configuration: Configuration) -> int:
    """Return the batches in the queue, and the thread's."""
    return DATA_LOADER.prefetch(configuration) + 1


DATA_LOADER = DataLoader(
    name="python_queue",
    display_name="Python queue",
    open=open_queue,
    settings={"image_dataset": "none", "prefetch_batches": PREFETCH_BATCHES},
    batches_ahead=batches_ahead,
)
