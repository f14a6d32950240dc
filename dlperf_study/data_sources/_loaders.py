"""The loaders of the libraries, each with its own worker processes; those of TensorFlow are threads.

Every function gets samples, of which ``samples[position]`` is image [3, S, S] float32 and label int64, the positions of
each batch, the number of worker processes, at least 1, and how many batches they prepare ahead. It returns an iterator
of batches: tensors of the library, on the CPU.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dlperf_study.data_sources._base import Batch, Consumer, DataSource
from dlperf_study.data_sources._samples import batch_positions
from dlperf_study.data_sources._tensorflow_loaders import load_images, load_samples
from dlperf_study.errors import ImageSetError, RunError
from dlperf_study.study.configuration import Configuration

#: Samples, positions, worker processes, batches ahead.
Loader = Callable[[Any, Iterator[range], int, int], Iterator[Batch]]


def workers_and_prefetch(source: DataSource, configuration: Configuration) -> tuple[int, int]:
    """Return the number of worker processes of a rank, and how many batches they prepare."""
    workers = int(source.setting(configuration, "data_workers"))
    return workers, int(source.setting(configuration, "prefetch_batches"))


class BatchPositions:
    """The positions of each batch, in the form in which both libraries take them: a batch sampler."""

    def __init__(self, positions: Iterator[range]) -> None:
        self._positions = positions

    def __iter__(self) -> Iterator[list[int]]:
        return map(list, self._positions)


def paddle_loader(samples: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load with ``paddle.io.DataLoader``, whose workers hand batches over in shared memory."""
    from paddle import CPUPlace
    from paddle.io import DataLoader

    sampler, ahead = BatchPositions(positions), batches_per_worker(prefetch, workers)
    return iter(
        DataLoader(samples, batch_sampler=sampler, num_workers=workers, prefetch_factor=ahead, places=[CPUPlace()])
    )


def torch_loader(samples: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load with ``torch.utils.data.DataLoader``, whose workers hand batches over in shared memory."""
    from torch.utils.data import DataLoader

    sampler, ahead = BatchPositions(positions), batches_per_worker(prefetch, workers)
    return iter(DataLoader(samples, batch_sampler=sampler, num_workers=workers, prefetch_factor=ahead))


def batches_per_worker(prefetch: int, workers: int) -> int:
    """Return how many batches each worker prepares ahead, so that all together prepare at least ``prefetch``."""
    return math.ceil(prefetch / workers)


#: What ends the workers of an iterator, in Paddle and in PyTorch; neither has a public name for it.
_ENDS_WORKERS = ("_try_shutdown_all", "_shutdown_workers")
#: Of samples that Python makes, and of images, which TensorFlow decodes itself.
LOADERS: dict[str, Loader] = {"paddle": paddle_loader, "torch": torch_loader, "tensorflow": load_samples}
IMAGE_LOADERS: dict[str, Loader] = LOADERS | {"tensorflow": load_images}


class LoadedBatches:
    """What one of ``loaders`` delivers to a rank; without workers the rank makes batches itself, numpy arrays."""

    def __init__(
        self,
        samples: Any,
        configuration: Configuration,
        consumer: Consumer,
        loaders: Mapping[str, Loader],
        workers: int,
        prefetch: int,
    ) -> None:
        self._source = configuration.data_source
        self._samples = _ReportingSamples(samples)
        positions = batch_positions(configuration, consumer)
        # Without workers, a loader of PaddlePaddle that meets a broken image would wait for ever.
        self._batches: Any = map(samples.batch, positions)
        if workers:
            self._batches = loaders[consumer.library](self._samples, positions, workers, prefetch)

    def next(self) -> Batch:
        """Wait for the next batch.

        Raises:
            ImageSetError: with the file, for an image that can't be decoded.
            RunError: a worker failed in another way, or ended.

        """
        try:
            images, labels = next(self._batches)
        # Each library has classes of its own for a worker that failed.
        except Exception as error:
            self._samples.raise_reported(error)
            if isinstance(error, ImageSetError):
                raise
            lines = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"
            raise RunError(f"the loader of data source {self._source} ended: {reason}") from error
        return images, labels

    def close(self) -> None:
        """End the worker processes now.

        A thread refers to the iterator of Paddle, and an error that was raised to that of PyTorch: neither goes when
        this source does.
        """
        for name in _ENDS_WORKERS:
            if end_workers := getattr(self._batches, name, None):
                end_workers()
        self._batches = None


class _ReportingSamples:
    """Samples whose errors reach the process that trains: of some loaders only a general message does."""

    def __init__(self, samples: Any) -> None:
        from multiprocessing import SimpleQueue

        self.samples = samples
        self._errors: SimpleQueue[str] = SimpleQueue()

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        """Return a sample; an error is reported, and raised."""
        try:
            image, label = self.samples[position]
        except ImageSetError as error:
            self._errors.put(str(error))
            raise
        return image, label

    def raise_reported(self, cause: Exception) -> None:
        """Raise the first error that was reported, if any."""
        if not self._errors.empty():
            raise ImageSetError(self._errors.get()) from cause
