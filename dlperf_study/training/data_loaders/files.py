"""Images from files, decoded and augmented by the workers of the library's own loader.

These are processes, in which Pillow decodes; those of TensorFlow are threads, in which TensorFlow does.
Batches are tensors of the library, on the CPU: those of the loader, not copied. Without workers the rank makes them
itself, as arrays of numpy.
"""

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders import _loaders
from dlperf_study.training.data_loaders._base import Consumer, DataLoader, image_dataset_obstacles
from dlperf_study.training.data_loaders._samples import configured_samples

WORKERS, PREFETCH_BATCHES = 2, 4


def open_files(configuration: Configuration, consumer: Consumer) -> _loaders.LoadedBatches:
    """Start the workers of a rank, which read its images."""
    samples, workers = configured_samples(configuration), _loaders.workers_and_prefetch(DATA_LOADER, configuration)
    return _loaders.LoadedBatches(samples, configuration, consumer, _loaders.IMAGE_LOADERS, *workers)


def batches_ahead(configuration: Configuration) -> int:
    """Return how many batches are prepared or in the making."""
    workers, prefetch = _loaders.workers_and_prefetch(DATA_LOADER, configuration)
    return workers * (_loaders.batches_per_worker(prefetch, workers) + 1)


DATA_LOADER = DataLoader(
    name="files",
    display_name="files",
    open=open_files,
    obstacles=image_dataset_obstacles,
    libraries=tuple(_loaders.IMAGE_LOADERS),
    batches_ahead=batches_ahead,
    packages=("pillow",),
    settings={"image_dataset": "none", "data_workers": WORKERS, "prefetch_batches": PREFETCH_BATCHES},
)
