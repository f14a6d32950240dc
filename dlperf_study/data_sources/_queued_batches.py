"""A thread of the training process that keeps batches ready for the steps in a queue."""

import threading
from collections.abc import Callable, Generator
from contextlib import closing
from queue import Empty, Full, Queue

from dlperf_study.data_sources._base import Batch
from dlperf_study.errors import RunError

#: How long a thread waits for the queue before it looks whether the thread at the other end has ended.
POLL_SECONDS = 0.2


def no_interruption() -> None:
    """Do nothing: the generator never waits for long."""


class QueuedBatches:
    """Batches from a generator that runs ahead in a thread, by as many as the queue of a data source holds.

    ``interrupt`` ends a wait of the generator when the queue is closed; the thread closes the generator afterwards.
    """

    def __init__(
        self,
        source: str,
        batches: Generator[Batch, None, None],
        depth: int,
        interrupt: Callable[[], None] = no_interruption,
    ) -> None:
        self._source, self._interrupt = source, interrupt
        self._queue: Queue[Batch] = Queue(depth)
        self._is_closed = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._produce, args=(batches,), name=source, daemon=True)
        self._thread.start()

    def next(self) -> Batch:
        """Wait for the next batch; raises RunError if the generator has failed or ended."""
        while True:
            try:
                return self._queue.get(timeout=POLL_SECONDS)
            except Empty:
                # What it put into the queue before it ended comes first.
                if not self._thread.is_alive() and self._queue.empty():
                    if isinstance(self._error, RunError):
                        raise self._error from None
                    reason = f"{type(self._error).__name__}: {self._error}" if self._error else "it has no more batches"
                    raise RunError(f"the generator of data source {self._source} ended: {reason}") from self._error

    def close(self) -> None:
        """End the thread."""
        self._is_closed.set()
        self._interrupt()
        self._thread.join()

    def _produce(self, batches: Generator[Batch, None, None]) -> None:
        try:
            with closing(batches):
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
