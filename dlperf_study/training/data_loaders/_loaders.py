"""The loaders of the libraries, each with its own worker processes; those of TensorFlow, ``tf.data``, are threads.

Every function gets samples, of which ``samples[position]`` is image [3, S, S] float32 and label int64, the positions of
each batch, the number of worker processes, at least 1, and how many batches they prepare ahead. It returns an iterator
of batches: tensors of the library, on the CPU.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, tee
from typing import Any

from dlperf_study.core.errors import ImageDatasetError, RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.data_loaders._base import Batch, Consumer, DataLoader, batch_positions
from dlperf_study.training.data_loaders._samples import Samples, normalisation
from dlperf_study.training.image_datasets.class_folders import ClassFolders

#: Samples, positions, worker processes, batches ahead.
Loader = Callable[[Any, Iterator[range], int, int], Iterator[Batch]]


def workers_and_prefetch(source: DataLoader, configuration: Configuration) -> tuple[int, int]:
    """Return the number of workers, and of batches ahead."""
    return int(source.setting(configuration, "data_workers")), source.prefetch(configuration)


class BatchPositions:
    """The positions of each batch, in the form in which both libraries take them: a batch sampler."""

    def __init__(self, positions: Iterator[range]) -> None:
        self._positions = positions

    def __iter__(self) -> Iterator[list[int]]:
        return map(list, self._positions)


def paddle_loader(samples: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load with ``paddle.io.DataLoader``, whose workers hand batches over in shared memory."""
    from paddle import CPUPlace, io

    sampler, ahead = BatchPositions(positions), batches_per_worker(prefetch, workers)
    return iter(
        io.DataLoader(samples, batch_sampler=sampler, num_workers=workers, prefetch_factor=ahead, places=[CPUPlace()])
    )


def torch_loader(samples: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load with ``torch.utils.data.DataLoader``, whose workers hand batches over in shared memory."""
    from torch.utils import data

    sampler, ahead = BatchPositions(positions), batches_per_worker(prefetch, workers)
    return iter(data.DataLoader(samples, batch_sampler=sampler, num_workers=workers, prefetch_factor=ahead))


def batches_per_worker(prefetch: int, workers: int) -> int:
    """Return how many batches each worker prepares ahead."""
    return math.ceil(prefetch / workers)


#: What ends the workers of an iterator, in Paddle and in PyTorch; neither has a public name for it.
_ENDS_WORKERS = ("_try_shutdown_all", "_shutdown_workers")


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
        self._source = configuration.data_loader
        self._samples = _ReportingSamples(samples)
        positions = batch_positions(configuration, consumer)
        # Without workers, a loader of PaddlePaddle that meets a broken image would wait for ever.
        self._batches: Any = map(samples.batch, positions)
        if workers:
            self._batches = loaders[consumer.library](self._samples, positions, workers, prefetch)

    def next(self) -> Batch:
        """Wait for the next batch.

        Raises:
            ImageDatasetError: with the file, for an image that can't be decoded.
            RunError: a worker failed in another way, or ended.

        """
        try:
            images, labels = next(self._batches)
        # Each library has classes of its own for a worker that failed.
        except Exception as error:
            self._samples.raise_reported(error)
            if isinstance(error, ImageDatasetError):
                raise
            lines = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[-1] if lines else 'no message'}"
            raise RunError(f"the loader of data loader {self._source} ended: {reason}") from error
        return images, labels

    def close(self) -> None:
        """End the worker processes now."""
        # A thread refers to the iterator of Paddle, and an error that was raised to that of PyTorch: neither goes when
        # this source does.
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
        except ImageDatasetError as error:
            self._errors.put(str(error))
            raise
        return image, label

    def raise_reported(self, cause: Exception) -> None:
        """Raise the first error that was reported, if any."""
        if not self._errors.empty():
            raise ImageDatasetError(self._errors.get()) from cause


def load_samples(samples: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load samples that Python makes, one at a time: the threads share Python's lock."""
    import tensorflow as tf

    def sample(position: Any) -> tuple[Any, Any]:
        made = tf.numpy_function(lambda number: samples[int(number)], [position], (tf.float32, tf.int64))
        return tf.ensure_shape(made[0], [3, None, None]), tf.ensure_shape(made[1], [])

    batch, positions = _first(positions)
    rows = tf.data.Dataset.from_generator(
        lambda: chain.from_iterable(positions), output_signature=tf.TensorSpec([], tf.int64)
    )
    return iter(_loaded(rows, sample, len(batch), workers, prefetch))


def load_images(reporting: Any, positions: Iterator[range], workers: int, prefetch: int) -> Iterator[Batch]:
    """Load images that TensorFlow decodes, cuts, scales and normalises."""
    # Order, cuts and flips are those of the other loaders; its decoder and its scaling round in other ways than Pillow.
    import tensorflow as tf

    samples: Samples = reporting.samples
    positions, of_failure = tee(positions)
    batch, positions = _first(positions)
    is_encoded = isinstance(samples.image_dataset, ClassFolders)
    content = tf.TensorSpec([None], tf.string) if is_encoded else tf.TensorSpec([None, None, None, 3], tf.uint8)
    specs = (
        tf.TensorSpec([None], tf.int64),
        content,
        tf.TensorSpec([None, 4], tf.float32),
        tf.TensorSpec([None], tf.bool),
    )
    # Python is called once for a batch, while the one before is decoded: a call for each image costs a quarter of that.
    drawn = tf.data.Dataset.from_generator(lambda: _contents(samples, positions, is_encoded), output_signature=specs)
    rows = drawn.prefetch(1).unbatch()
    batches = iter(_loaded(rows, _image_sample(samples, is_encoded), len(batch), workers, prefetch))
    for of_batch in of_failure:
        try:
            images, labels = next(batches)
        except tf.errors.OpError:
            # Its message does not name the file; Pillow's does, if it can't decode the image either.
            for position in of_batch:
                reporting[position]
            raise
        yield images, labels


def _first(positions: Iterator[range]) -> tuple[range, Iterator[range]]:
    """Return the first positions, and the iterator with them."""
    first = next(positions)
    return first, chain([first], positions)


def _loaded(rows: Any, sample: Callable[..., Any], batch: int, workers: int, prefetch: int) -> Any:
    """Return the dataset of batches, made by threads of its own."""
    import tensorflow as tf

    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    options.autotune.enabled = False
    with tf.device("/CPU:0"):
        samples = rows.map(sample, num_parallel_calls=workers, deterministic=True)
        return samples.batch(batch).prefetch(prefetch).with_options(options)


def _contents(samples: Samples, positions: Iterator[range], is_encoded: bool) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield labels, contents, boxes and mirroring of each batch."""
    import numpy as np

    for of_batch in positions:
        rows = [_content(samples, position, is_encoded) for position in of_batch]
        labels, contents, boxes, are_mirrored = zip(*rows, strict=True)
        yield np.array(labels, np.int64), np.array(contents), np.array(boxes, np.float32), np.array(are_mirrored)


def _content(samples: Samples, position: int, is_encoded: bool) -> tuple[Any, Any, Any, Any]:
    """Return label, file or pixels, box and mirroring."""
    import numpy as np

    image_dataset: Any = samples.image_dataset
    index = samples.index(position)
    if is_encoded:
        content: Any = image_dataset.files[index]
        width, height = image_dataset.size(index)
    else:
        content = np.asarray(image_dataset.image(index))
        height, width, _ = content.shape
    return image_dataset.labels[index], content, *samples.draws(position, width, height)


def _image_sample(samples: Samples, is_encoded: bool) -> Callable[[Any, Any, Any, Any], tuple[Any, Any]]:
    """Return what makes a sample of a content."""

    def sample(label: Any, content: Any, box: Any, is_mirrored: Any) -> tuple[Any, Any]:
        image = decoded(content) if is_encoded else content
        return augmented(image, samples.size, box, is_mirrored), label

    return sample


def decoded(file: Any) -> Any:
    """Return the pixels of a JPEG: uint8 [height, width, 3]."""
    import tensorflow as tf

    return tf.io.decode_jpeg(tf.io.read_file(file), channels=3, dct_method="INTEGER_ACCURATE")


def augmented(image: Any, size: int, box: Any, is_mirrored: Any) -> Any:
    """Return a part of an image: float32 [3, size, size]."""
    import tensorflow as tf

    left, top, right, bottom = tf.unstack(box)
    scale = tf.stack([size / (bottom - top), size / (right - left)])
    # The filter reads beyond the box, as Pillow's does.
    scaled = tf.raw_ops.ScaleAndTranslate(
        images=image[None],
        size=[size, size],
        scale=scale,
        translation=-scale * tf.stack([top, left]),
        kernel_type="triangle",
    )[0]
    pixels = tf.round(tf.cond(is_mirrored, lambda: tf.reverse(scaled, [1]), lambda: scaled))
    factors, offsets = zip(*normalisation(), strict=True)
    return tf.ensure_shape(tf.transpose(pixels * factors + offsets, [2, 0, 1]), [3, size, size])


#: Of samples that Python makes, and of images, which TensorFlow decodes itself.
LOADERS: dict[str, Loader] = {"paddle": paddle_loader, "torch": torch_loader, "tensorflow": load_samples}
IMAGE_LOADERS: dict[str, Loader] = LOADERS | {"tensorflow": load_images}
