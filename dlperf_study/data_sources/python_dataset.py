"""A Python dataset behind the loader of the training library: worker processes, shared memory and prefetch.

Batches are tensors of the library, on the CPU; without workers the rank makes them itself, as numpy's arrays. The
samples are made up, or images of an image set.
"""

from typing import Any

from dlperf_study.data_sources._base import Batch, Consumer, DataSource
from dlperf_study.data_sources._host_batches import host_samples
from dlperf_study.data_sources._loaders import LOADERS, batches_per_worker
from dlperf_study.data_sources._samples import batch_positions
from dlperf_study.errors import RunError
from dlperf_study.study.configuration import Configuration

WORKERS, PREFETCH_BATCHES = 1, 2


class DatasetBatches:
    """What the library's loader delivers to a rank."""

    def __init__(self, configuration: Configuration, consumer: Consumer) -> None:
        samples, positions = host_samples(configuration), batch_positions(configuration, consumer)
        workers, prefetch = workers_and_prefetch(configuration)
        self._batches: Any = map(samples.batch, positions)
        if workers:
            self._batches = LOADERS[consumer.library](samples, positions, workers, prefetch)

    def next(self) -> Batch:
        """Wait for the next batch; raises RunError if a worker failed or ended."""
        try:
            images, labels = next(self._batches)
        # Each library has classes of its own for a worker that failed.
        except Exception as error:
            lines = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"
            raise RunError(f"the loader of data source python_dataset ended: {reason}") from error
        return images, labels

    def close(self) -> None:
        """End the worker processes; Paddle's are kept alive by a thread that refers to the iterator."""
        end_workers = getattr(self._batches, "_try_shutdown_all", None)
        if end_workers:
            end_workers()
        self._batches = None


def workers_and_prefetch(configuration: Configuration) -> tuple[int, int]:
    """Return the number of worker processes of a rank, and how many batches they prepare."""
    workers = int(DATA_SOURCE.setting(configuration, "data_workers"))
    return workers, int(DATA_SOURCE.setting(configuration, "prefetch_batches"))


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches the workers prepare."""
    workers, prefetch = workers_and_prefetch(configuration)
    return batches_per_worker(prefetch, workers) * workers if workers else 0


DATA_SOURCE = DataSource(
    name="python_dataset",
    open=DatasetBatches,
    libraries=tuple(LOADERS),
    settings={"image_set": "none", "data_workers": WORKERS, "prefetch_batches": PREFETCH_BATCHES},
    batches_ahead=batches_ahead,
)
