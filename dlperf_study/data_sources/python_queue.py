"""A Python generator in a thread of the training process, and a queue between it and the steps.

The thread makes batches while the steps compute, as far as Python's global lock and the cores of the rank allow. The
samples are made up, or images of an image set.
"""

import threading
from collections.abc import Iterator
from queue import Empty, Full, Queue

from dlperf_study.data_sources._base import Batch, Consumer, DataSource
from dlperf_study.data_sources._host_batches import host_batches
from dlperf_study.errors import RunError
from dlperf_study.study.configuration import Configuration

#: How long a thread waits for the queue before it looks whether the thread at the other end has ended.
POLL_SECONDS = 0.2
PREFETCH_BATCHES = 2


class QueuedBatches:
    """Batches from a generator that runs ahead in a thread, by as many as the queue holds."""

    def __init__(self, batches: Iterator[Batch], depth: int) -> None:
        self._queue: Queue[Batch] = Queue(depth)
        self._is_closed = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._produce, args=(batches,), name="python_queue", daemon=True)
        self._thread.start()

    def next(self) -> Batch:
        """Wait for the next batch; raises RunError if the generator has failed or ended."""
        while True:
            try:
                return self._queue.get(timeout=POLL_SECONDS)
            except Empty:
                # What it put into the queue before it ended comes first.
                if not self._thread.is_alive() and self._queue.empty():
                    reason = f"{type(self._error).__name__}: {self._error}" if self._error else "it has no more batches"
                    raise RunError(f"the generator of data source python_queue ended: {reason}") from self._error

    def close(self) -> None:
        """End the thread."""
        self._is_closed.set()
        self._thread.join()

    def _produce(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                self._put(batch)
                if self._is_closed.is_set():
                    return
        except BaseException as error:
            self._error = error

    def _put(self, batch: Batch) -> None:
        while not self._is_closed.is_set():
            try:
                self._queue.put(batch, timeout=POLL_SECONDS)
            except Full:
                continue
            return


def open_queue(configuration: Configuration, consumer: Consumer) -> QueuedBatches:
    """Start the thread of a rank."""
    return QueuedBatches(host_batches(configuration, consumer), depth(configuration))


def depth(configuration: Configuration) -> int:
    """Return how many batches the queue holds."""
    return int(DATA_SOURCE.setting(configuration, "prefetch_batches"))


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches are finished: those in the queue, and the one that the thread is about to put there."""
    return depth(configuration) + 1


DATA_SOURCE = DataSource(
    name="python_queue",
    open=open_queue,
    settings={"image_set": "none", "prefetch_batches": PREFETCH_BATCHES},
    batches_ahead=batches_ahead,
)
