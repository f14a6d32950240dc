"""A Python generator in a thread of the training process, and a queue between it and the steps.

The thread makes batches while the steps compute, as far as Python's global lock and the cores of the rank allow. The
samples are made up, or images of an image set.
"""

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_sources._base import Consumer, DataSource
from dlperf_study.training.data_sources._host_batches import QueuedBatches, host_batches

PREFETCH_BATCHES = 2


def open_queue(configuration: Configuration, consumer: Consumer) -> QueuedBatches:
    """Start the thread of a rank."""
    return QueuedBatches(DATA_SOURCE.name, host_batches(configuration, consumer), DATA_SOURCE.prefetch(configuration))


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches are finished: those in the queue, and the one that the thread is about to put there."""
    return DATA_SOURCE.prefetch(configuration) + 1


DATA_SOURCE = DataSource(
    name="python_queue",
    display_name="Python queue",
    open=open_queue,
    settings={"image_set": "none", "prefetch_batches": PREFETCH_BATCHES},
    batches_ahead=batches_ahead,
)
