"""Images from files, decoded and augmented in the worker processes of the library's own loader.

Batches are tensors of the library, on the CPU: those of the loader, not copied. Without workers the rank makes them
itself, as arrays of numpy.
"""

from collections.abc import Iterator
from typing import Any

from dlperf_study.data_sources._base import Batch, Consumer, DataSource
from dlperf_study.data_sources._loaders import LOADERS, batches_per_worker
from dlperf_study.data_sources._samples import Samples, batch_positions, samples_of
from dlperf_study.errors import ImageSetError
from dlperf_study.study.configuration import PARAMETERS, Configuration

WORKERS, PREFETCH_BATCHES = 2, 4


class LoadedBatches:
    """What the library's loader delivers to a rank."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        workers = int(DATA_SOURCE.setting(configuration, "data_workers"))
        prefetch = int(DATA_SOURCE.setting(configuration, "prefetch_batches"))
        positions = batch_positions(configuration, consumer)
        samples = samples_of(configuration)
        self._samples = ReportingSamples(samples)
        # Without workers, a loader of PaddlePaddle that meets a broken image would wait for ever.
        self._batches: Any = map(samples.batch, positions)
        if workers:
            self._batches = LOADERS[consumer.library](self._samples, positions, workers, prefetch)

    def next(self) -> Batch:
        """Wait for the next batch; raises ImageSetError, with the file, for an image that can't be decoded."""
        try:
            images, labels = next(self._batches)
        # Each library has classes of its own for a worker that failed.
        except Exception as error:
            self._samples.raise_reported(error)
            raise
        return images, labels

    def close(self) -> None:
        """End the worker processes, as the loaders do when nothing refers to them."""
        self._batches = None


class ReportingSamples:
    """Samples whose errors reach the process that trains: of some loaders only a general message does."""

    def __init__(self, samples: Samples) -> None:
        from multiprocessing import SimpleQueue

        self._samples = samples
        self._errors: SimpleQueue[str] = SimpleQueue()

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        """Return a sample; an error is reported, and raised."""
        try:
            return self._samples[position]
        except ImageSetError as error:
            self._errors.put(str(error))
            raise

    def raise_reported(self, cause: Exception) -> None:
        """Raise the first error that was reported, if any."""
        if not self._errors.empty():
            raise ImageSetError(self._errors.get()) from cause


def obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield that the configuration names no images."""
    if configuration.image_set == PARAMETERS["image_set"].default:
        yield "data_source files needs an image_set"


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches the workers prepare, one more in the making of each included."""
    workers = int(DATA_SOURCE.setting(configuration, "data_workers"))
    prefetch = int(DATA_SOURCE.setting(configuration, "prefetch_batches"))
    return workers * (batches_per_worker(prefetch, workers) + 1) if workers else 1


DATA_SOURCE = DataSource(
    name="files",
    open=LoadedBatches,
    obstacles=obstacles,
    libraries=tuple(LOADERS),
    batches_ahead=batches_ahead,
    packages=("pillow",),
    settings={"image_set": "none", "data_workers": WORKERS, "prefetch_batches": PREFETCH_BATCHES},
)
