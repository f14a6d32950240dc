"""Images per second of each data loader alone, against a bare loop over the library's own loader, side by side.

The bare loop decodes and makes samples by the same code, with the loader's own batches, order and as many workers: what
differs is what this project adds. That of ``tf.data`` draws its cuts itself, too. A producer over ZeroMQ is compared
with the Python queue: each decodes in one thread. Both take turns in one process, a new one for each comparison. Noise
only ever makes a turn slower, so the ratio is that of the upper quartiles. Batches that wait when a turn begins are not
counted.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dlperf_study.machines.cluster.software import library_versions, software
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import data_loaders
from dlperf_study.training.data_loaders._base import Consumer
from dlperf_study.training.data_loaders._host_batches import MadeUpSamples, host_samples
from dlperf_study.training.data_loaders._loaders import augmented, decoded
from dlperf_study.training.data_loaders._samples import AREA, RATIO, Samples
from dlperf_study.training.data_loaders.files import PREFETCH_BATCHES, WORKERS
from dlperf_study.training.image_datasets._base import FOLDER_VARIABLE
from dlperf_study.training.image_datasets._photographs import make_photographs
from dlperf_study.training.questions import packages, packages_of_libraries
from tests.training.data_loaders.serving import producer

BATCH, IMAGE_SIZE = 32, 224
TURNS, TURN_SECONDS, LEAST_BATCHES = 9, 1.0, 8
#: More than may wait for their step in any source.
WAITING_BATCHES = 9
LIMIT, LIMIT_OF_ZMQ = 0.95, 1.0
#: Bytes. By default glibc returns free memory to the system more or less often, by where other values lie: turns of one
#: loader differed by a quarter. With these it keeps the memory, for both that take turns.
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**31 - 1), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
#: Longer than a turn.
EPOCH_BATCHES = 100_000

NextBatch = Callable[[], Any]
Delivery = Callable[[], AbstractContextManager[NextBatch]]


@dataclass(frozen=True)
class Comparison:
    """A data loader, a library, whether JPEGs are read, and what the rate is divided by."""

    source: str
    library: str
    image_dataset: str = "none"
    reference: str = "loader"

    @property
    def limit(self) -> float:
        """The smallest ratio that is no failure."""
        return LIMIT_OF_ZMQ if self.source == "zmq" else LIMIT


COMPARISONS = (
    *(Comparison("files", library, "photographs") for library in ("paddle", "torch", "tensorflow")),
    *(Comparison("python_dataset", library) for library in ("paddle", "torch")),
    *(Comparison("synthetic_host", library, reference="random numbers") for library in ("paddle", "torch")),
    *(Comparison("python_queue", library) for library in ("paddle", "torch")),
    Comparison("python_queue", "paddle", "photographs"),
    # Values that are made up cost less than their way between processes, so only images are compared.
    Comparison("zmq", "paddle", "photographs", "python_queue"),
)


def main() -> int:
    """Compare every source; return 1 when a ratio is below its limit."""
    if len(sys.argv) > 1:
        return print_rates(COMPARISONS[int(sys.argv[1])])
    installed, failed = library_versions(packages_of_libraries(), software(packages())), False
    with tempfile.TemporaryDirectory() as folder:
        photographs, _ = make_photographs(Path(folder))
        environment = {**os.environ, **KEPT_MEMORY, FOLDER_VARIABLE: str(photographs), "OMP_NUM_THREADS": "1"}
        for index, comparison in enumerate(COMPARISONS):
            if comparison.library not in installed:
                print(f"{comparison.source}: not measured, {comparison.library} is not installed", flush=True)
                continue
            command = [sys.executable, "-m", "benchmarks.data_loaders", str(index)]
            with machine_lock("benchmarks"):
                failed |= bool(subprocess.run(command, env=environment, check=False).returncode)
    return int(failed)


def print_rates(comparison: Comparison) -> int:
    """Print both rates and their ratio; return 1 when it is below its limit."""
    configuration = configuration_of(comparison.source, comparison)
    turns = list(rates(partial(delivery_of, configuration, comparison.library), reference_of(comparison)))
    ours, theirs = (statistics.quantiles(column, n=4)[-1] for column in zip(*turns, strict=True))
    ratio = ours / theirs
    images = "made-up values" if comparison.image_dataset == "none" else comparison.image_dataset
    reference = f"{comparison.reference} of {comparison.library}"
    print(
        f"{comparison.source}, {images}: {ours:.0f} images/s, {reference}: {theirs:.0f} images/s; "
        f"ratio {ratio:.2f} (limit: at least {comparison.limit:g})",
        flush=True,
    )
    return int(ratio < comparison.limit)


def rates(ours: Delivery, theirs: Delivery) -> Iterator[tuple[float, float]]:
    """Yield the images per second of both in each turn; who is first alternates."""
    for turn in range(TURNS):
        if turn % 2:
            rate = images_per_second(ours)
            yield rate, images_per_second(theirs)
        else:
            reference = images_per_second(theirs)
            yield images_per_second(ours), reference


def images_per_second(delivery: Delivery) -> float:
    """Open a source, and return the rate that it sustains."""
    with delivery() as next_batch:
        for _ in range(WAITING_BATCHES):
            next_batch()
        start, batches = time.perf_counter(), 0
        while time.perf_counter() - start < TURN_SECONDS or batches < LEAST_BATCHES:
            next_batch()
            batches += 1
        return batches * BATCH / (time.perf_counter() - start)


def configuration_of(source: str, comparison: Comparison) -> Configuration:
    """Return a configuration of one rank with a data loader; its settings are its own choice."""
    return Configuration(
        study="benchmark", cluster="local", framework="paddle_collective", strategy="all_reduce", model="resnet50",
        data_loader=source, image_dataset=comparison.image_dataset, image_size=IMAGE_SIZE, classes=10,
        batch_per_device=BATCH,
    )  # fmt: skip


@contextmanager
def delivery_of(configuration: Configuration, library: str) -> Iterator[NextBatch]:
    """Open a data loader, with its producer if it has one."""
    source = data_loaders.load(configuration.data_loader)
    with producer(configuration), closing(source.open(configuration, Consumer(0, 1, library))) as batches:
        yield batches.next


def reference_of(comparison: Comparison) -> Delivery:
    """Return what a source is compared with."""
    if comparison.reference == "python_queue":
        return partial(delivery_of, configuration_of("python_queue", comparison), comparison.library)
    if comparison.reference == "random numbers":
        return partial(random_numbers, comparison.library)
    workers = WORKERS if comparison.source == "files" else 1
    samples = host_samples(configuration_of(comparison.source, comparison))
    if comparison.library == "tensorflow":
        assert isinstance(samples, Samples)
        return partial(bare_tensorflow, samples, workers)
    return partial(bare_loader, samples, comparison.library, workers)


class Dataset:
    """Samples as the loaders of the libraries take them, with a length."""

    def __init__(self, samples: Samples | MadeUpSamples) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return EPOCH_BATCHES * BATCH

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        return self._samples[position]


@contextmanager
def bare_loader(samples: Samples | MadeUpSamples, library: str, workers: int) -> Iterator[NextBatch]:
    """Start the loader of a library as anybody would."""
    dataset: Any = Dataset(samples)
    if library == "torch":
        from torch.utils.data import DataLoader as TorchLoader

        batches = iter(TorchLoader(dataset, BATCH, num_workers=workers))
    else:
        import paddle

        places = [paddle.CPUPlace()]
        batches = iter(paddle.io.DataLoader(dataset, batch_size=BATCH, num_workers=workers, places=places))
    yield lambda: next(batches)
    end_workers = getattr(batches, "_try_shutdown_all", None) or batches._shutdown_workers
    end_workers()


@contextmanager
def bare_tensorflow(samples: Samples, workers: int) -> Iterator[NextBatch]:
    """Start tf.data as anybody would: the cuts are its own."""
    import tensorflow as tf

    images: Any = samples.image_dataset
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    files = tf.data.Dataset.from_tensor_slices((images.files, images.labels)).shuffle(len(images.files)).repeat()
    loaded = files.map(partial(tensorflow_sample, samples.size), num_parallel_calls=workers)
    batches = iter(loaded.batch(BATCH).prefetch(PREFETCH_BATCHES).with_options(options))
    yield lambda: next(batches)


def tensorflow_sample(size: int, file: Any, label: Any) -> tuple[Any, Any]:
    """Return a random cut of an image, as TensorFlow draws it, and the label."""
    import tensorflow as tf

    image = decoded(file)
    shape, no_boxes = tf.shape(image), tf.zeros([1, 0, 4])
    corner, extent, _ = tf.image.sample_distorted_bounding_box(
        shape, no_boxes, aspect_ratio_range=RATIO, area_range=AREA, use_image_if_no_bounding_boxes=True
    )
    top_left, bottom_right = corner[:2], corner[:2] + extent[:2]
    box = tf.cast(tf.concat([top_left[::-1], bottom_right[::-1]], 0), tf.float32)
    return augmented(image, size, box, tf.random.uniform([]) < 0.5), label


@contextmanager
def random_numbers(library: str) -> Iterator[NextBatch]:
    """Yield what draws a batch of random numbers by the library."""
    shape = [BATCH, 3, IMAGE_SIZE, IMAGE_SIZE]
    if library == "torch":
        import torch

        yield lambda: (torch.empty(shape).uniform_(), torch.randint(10, shape[:1]))
    else:
        import paddle

        yield lambda: (paddle.uniform(shape), paddle.randint(0, 10, shape[:1]))


if __name__ == "__main__":
    sys.exit(main())
