"""Layers and batches shared by the tests of the networks."""

from dlperf_study import models
from dlperf_study.study.configuration import Configuration


def build(name, rank=0, world_size=1, **changes):
    values = {"image_size": 32, "classes": 10, **changes}
    configuration = Configuration(study="s", cluster="c", framework="f", strategy="d", model=name, **values)
    return models.load(name).builder("paddle")(configuration, rank, world_size)


def batch(samples, classes, image_size=32):
    """Return images and labels, the same at every call."""
    import numpy
    import paddle

    random = numpy.random.default_rng(7)
    images = random.standard_normal((samples, 3, image_size, image_size)).astype("float32")
    return paddle.to_tensor(images), paddle.to_tensor(random.integers(0, classes, samples))


def count(parameters):
    return sum(int(parameter.size) for parameter in parameters)
