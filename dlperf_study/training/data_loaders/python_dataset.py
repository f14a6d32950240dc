"""A Python dataset behind the loader of the training library: worker processes, shared memory and prefetch.

The workers of TensorFlow are threads, which share Python's lock.

Batches are tensors of the library, on the CPU; without workers the rank makes them itself, as numpy's arrays. The
samples are made up, or images of an image dataset.
"""

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders._base import Consumer, DataLoader
from dlperf_study.training.data_loaders._host_batches import host_samples
from dlperf_study.training.data_loaders._loaders import LOADERS, LoadedBatches, batches_per_worker, workers_and_prefetch

WORKERS, PREFETCH_BATCHES = 1, 2


def open_dataset(configuration: Configuration, consumer: Consumer) -> LoadedBatches:
    """Start the workers of a rank."""
    samples, workers = host_samples(configuration), workers_and_prefetch(DATA_LOADER, configuration)
    return LoadedBatches(samples, configuration, consumer, LOADERS, *workers)


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches the workers prepare."""
    workers, prefetch = workers_and_prefetch(DATA_LOADER, configuration)
    if workers:
        return batches_per_worker(prefetch, workers) * workers
    return 0


DATA_LOADER = DataLoader(
    name="python_dataset",
    display_name="Python data set",
    open=open_dataset,
    libraries=tuple(LOADERS),
    settings={"image_dataset": "none", "data_workers": WORKERS, "prefetch_batches": PREFETCH_BATCHES},
    batches_ahead=batches_ahead,
)
