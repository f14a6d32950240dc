"""Random values that the training library makes on the host, anew for every step, and that travel to the device.

Makes tensors of the library. Uniform values of variance 1: each library makes them from a seed of their own, which the
seed of the configuration, the replica and the step determine. Tokens are made by numpy; those of a global batch follow
from the seed and its step.
"""

import math
from collections.abc import Callable, Iterator, Mapping

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parameter import IMAGES, SEQUENCES
from dlperf_study.training.data_loaders._base import Batch, Consumer, DataLoader, RequestedBatches, random_generator
from dlperf_study.training.data_loaders._sequences import made_up_tokens, sequence_batches

#: Uniform values between minus this and this have variance 1.
LARGEST_VALUE = math.sqrt(3)
LARGEST_SEED = 2**31 - 1


def paddle_batch(configuration: Configuration, seed: int) -> Batch:
    """Return a batch of Paddle's tensors, always on the CPU."""
    import paddle

    shape = [configuration.batch_per_device, 3, configuration.image_size, configuration.image_size]
    with paddle.base.dygraph.guard(paddle.CPUPlace()):
        images = paddle.uniform(shape, "float32", -LARGEST_VALUE, LARGEST_VALUE, seed)
        labels = paddle.uniform(shape[:1], "float64", 0, configuration.classes, seed)
        return images, labels.astype("int64")


def torch_batch(configuration: Configuration, seed: int) -> Batch:
    """Return a batch of PyTorch's tensors on the CPU."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    shape = (configuration.batch_per_device, 3, configuration.image_size, configuration.image_size)
    images = torch.empty(shape).uniform_(-LARGEST_VALUE, LARGEST_VALUE, generator=generator)
    return images, torch.randint(configuration.classes, shape[:1], generator=generator)


def tensorflow_batch(configuration: Configuration, seed: int) -> Batch:
    """Return a batch of TensorFlow's tensors on the CPU."""
    import tensorflow as tf

    shape = [configuration.batch_per_device, 3, configuration.image_size, configuration.image_size]
    with tf.device("/CPU:0"):
        images = tf.random.stateless_uniform(shape, [seed, 0], -LARGEST_VALUE, LARGEST_VALUE)
        return images, tf.random.stateless_uniform(shape[:1], [seed, 1], 0, configuration.classes, tf.int64)


#: How each library makes a batch from a seed.
MAKERS: Mapping[str, Callable[[Configuration, int], Batch]] = {
    "paddle": paddle_batch,
    "torch": torch_batch,
    "tensorflow": tensorflow_batch,
}


def open_batches(configuration: Configuration, consumer: Consumer) -> RequestedBatches:
    """Return the batches of a rank."""
    if configuration.samples == SEQUENCES:
        return RequestedBatches(sequence_batches(configuration, consumer, made_up_tokens(configuration)))
    return RequestedBatches(_images(configuration, consumer))


def _images(configuration: Configuration, consumer: Consumer) -> Iterator[Batch]:
    make, seeds = MAKERS[consumer.library], random_generator(configuration, consumer.replica)
    while True:
        yield make(configuration, int(seeds.integers(1, LARGEST_SEED)))


DATA_LOADER = DataLoader(
    name="synthetic_host",
    display_name="synthetic data from the host",
    open=open_batches,
    libraries=tuple(MAKERS),
    samples=(IMAGES, SEQUENCES),
)
