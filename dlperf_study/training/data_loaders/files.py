"""Images from files, decoded and augmented by the workers of the library's own loader.

These are processes, in which Pillow decodes; those of TensorFlow are threads, in which TensorFlow does.
Batches are tensors of the library, on the CPU: those of the loader, not copied. Without workers the rank makes them
itself, as arrays of numpy.
"""

from collections.abc import Iterator

from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.training.data_loaders._base import Consumer, DataLoader
from dlperf_study.training.data_loaders._loaders import (
    IMAGE_LOADERS,
    LoadedBatches,
    batches_per_worker,
    workers_and_prefetch,
)
from dlperf_study.training.data_loaders._samples import configured_samples

WORKERS, PREFETCH_BATCHES = 2, 4


def open_files(configuration: Configuration, consumer: Consumer) -> LoadedBatches:
    """Start the workers of a rank, which read its images."""
    samples, workers = configured_samples(configuration), workers_and_prefetch(DATA_LOADER, configuration)
    return LoadedBatches(samples, configuration, consumer, IMAGE_LOADERS, *workers)


def obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield that the configuration names no images."""
    if configuration.image_dataset == PARAMETERS["image_dataset"].default:
        yield "data_loader files needs an image_dataset"


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches the workers prepare, one more in the making of each included."""
    workers, prefetch = workers_and_prefetch(DATA_LOADER, configuration)
    return workers * (batches_per_worker(prefetch, workers) + 1)


DATA_LOADER = DataLoader(
    name="files",
    display_name="files",
    open=open_files,
    obstacles=obstacles,
    libraries=tuple(IMAGE_LOADERS),
    batches_ahead=batches_ahead,
    packages=("pillow",),
    settings={"image_dataset": "none", "data_workers": WORKERS, "prefetch_batches": PREFETCH_BATCHES},
)
