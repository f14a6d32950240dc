"""The samples and batches that Python makes on the host, whatever carries them to the step.

Without files, random images of 8-bit integers, as files have them, are made up once, kept in memory, and converted to
floats each time they are taken. Every source that takes them delivers the same samples for the same seed.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders import _samples
from dlperf_study.training.data_loaders._base import NO_IMAGES, Batch, Consumer, batch_positions
from dlperf_study.training.data_loaders._samples import Samples, configured_samples

MOST_IMAGES, MOST_BYTES = 1024, 64 * 2**20
#: Of the values 0 to 255, if all are as frequent.
UNIFORM_MEAN, UNIFORM_DEVIATION = 127.5, 73.9


class MadeUpSamples:
    """Samples by their position in a sequence without end, which repeats itself."""

    def __init__(self, configuration: Configuration) -> None:
        import numpy as np

        generator = np.random.default_rng(configuration.seed)
        size = configuration.image_size
        count = max(1, min(MOST_IMAGES, MOST_BYTES // (3 * size**2)))
        self._images = generator.integers(0, 256, (count, 3, size, size), dtype=np.uint8)
        self._labels = generator.integers(0, configuration.classes, count, dtype=np.int64)

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        """Return image [3, S, S] float32 and label [] int64."""
        import numpy as np

        index = position % len(self._labels)
        pixels = self._images[index]
        image = np.empty(pixels.shape, dtype=np.float32)
        standardise(pixels, image)
        return image, self._labels[index]

    def batch(self, positions: range) -> Batch:
        """Return images [N, 3, S, S] float32 and labels [N] int64."""
        import numpy as np

        pixels, labels = self.pixel_batch(positions)
        images = np.empty(pixels.shape, dtype=np.float32)
        standardise(pixels, images)
        return images, labels

    def pixel_batch(self, positions: range) -> Batch:
        """Return pixels [N, 3, S, S] uint8 and labels [N] int64."""
        import numpy as np

        indices = np.asarray(positions) % len(self._labels)
        return self._images[indices], self._labels[indices]


def standardise(pixels: Any, out: Any) -> None:
    """Write 8-bit values to ``out``, float32, standardised."""
    import numpy as np

    np.copyto(out, pixels)
    out -= np.float32(UNIFORM_MEAN)
    out /= np.float32(UNIFORM_DEVIATION)


def host_samples(configuration: Configuration) -> Samples | MadeUpSamples:
    """Return the samples of the image dataset, or made-up ones."""
    if configuration.image_dataset == NO_IMAGES:
        return MadeUpSamples(configuration)
    return configured_samples(configuration)


def host_batches(configuration: Configuration, consumer: Consumer) -> Generator[Batch, None, None]:
    """Yield the batches of a rank, each with memory of its own."""
    samples = host_samples(configuration)
    for positions in batch_positions(configuration, consumer):
        yield samples.batch(positions)


@dataclass(frozen=True)
class PixelFormat:
    """The shape of an image's 8-bit pixels, and what writes them, normalised, to an image, float32 [3, S, S]."""

    shape: tuple[int, int, int]
    normalise: Callable[[Any, Any], None]


def pixel_format(configuration: Configuration) -> PixelFormat:
    """Return the format of the pixels of ``pixel_batches``."""
    size = configuration.image_size
    if configuration.image_dataset == NO_IMAGES:
        return PixelFormat((3, size, size), standardise)
    return PixelFormat((size, size, 3), _samples.normalise)


def pixel_batches(configuration: Configuration, consumer: Consumer) -> Generator[Batch, None, None]:
    """Yield the batches of ``host_batches``, not yet normalised: a quarter of the bytes."""
    samples = host_samples(configuration)
    for positions in batch_positions(configuration, consumer):
        yield samples.pixel_batch(positions)


#: How long a thread waits for the queue before it looks whether the thread at the other end has ended.
POLL_SECONDS = 0.2


class QueuedBatches:
    """Batches from a generator that runs ahead in a thread, by as many as the queue of a data loader holds.

    ``interrupt`` ends a wait of the generator when the queue is closed; the thread closes the generator afterwards.
    """

    def __init__(
        self,
        source: str,
        batches: Generator[Batch, None, None],
        depth: int,
        interrupt: Callable[[], None] = lambda: None,
    ) -> None:
        self._source, self._interrupt = source, interrupt
        self._queue: Queue[Batch] = Queue(depth)
        self._is_closed = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._produce, args=(batches,), name=source, daemon=True)
        self._thread.start()

    def next(self) -> Batch:
        while True:
            try:
                return self._queue.get(timeout=POLL_SECONDS)
            except Empty:
                # What it put into the queue before it ended comes first.
                if not self._thread.is_alive() and self._queue.empty():
                    if isinstance(self._error, RunError):
                        raise self._error from None
                    reason = f"{type(self._error).__name__}: {self._error}" if self._error else "it has no more batches"
                    raise RunError(f"the generator of data loader {self._source} ended: {reason}") from self._error

    def close(self) -> None:
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
