"""Builds TensorFlow's networks, in a process without Paddle: ``tensorflow_networks.py FOLDER MODEL...``.

It prints their numbers of parameters as JSON. It gives a network that has a FOLDER/MODEL.npz the parameters in it, does
one step without dropout on its batch, and writes loss, gradients and running means to FOLDER/MODEL-tensorflow.npz.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy
import tensorflow as tf

from dlperf_study.study.configuration import Configuration
from dlperf_study.training import models

SAMPLES, CLASSES = 4, 10


def build(name: str, image_size: int, classes: int) -> Any:
    values = {"study": "s", "cluster": "c", "framework": "f", "strategy": "d", "model": name}
    configuration = Configuration(**values, image_size=image_size, classes=classes, memory_format="nhwc")  # type: ignore[arg-type]
    return models.load(name).builder("tensorflow")(configuration, 0, 1)


def count(name: str) -> dict[int, int]:
    """Return the number of trainable parameters for each number of classes that has a published one.

    In a graph nothing is computed, also no initial value.
    """
    model = models.load(name)
    counts = {}
    for classes in model.parameters:
        with tf.Graph().as_default():
            network = build(name, model.image_size, classes)
        counts[classes] = sum(parameter.shape.num_elements() for parameter in network.parameters)
    return counts


def step(folder: Path, name: str) -> None:
    tf.nn.dropout = lambda features, rate: features
    given = numpy.load(folder / f"{name}.npz")
    images = numpy.ascontiguousarray(given["images"].transpose(0, 2, 3, 1))
    network = build(name, images.shape[1], CLASSES)
    starts = [(parameter.numpy().std(), parameter.numpy().mean()) for parameter in network.parameters]
    for number, parameter in enumerate(network.parameters):
        parameter.assign(given[f"parameter_{number}"])
    with tf.GradientTape() as tape:
        loss = network.loss(images, given["labels"])
    gradients = tape.gradient(loss, network.parameters)
    results = {f"gradient_{number}": gradient.numpy() for number, gradient in enumerate(gradients)}
    results |= {f"mean_{number}": mean.numpy() for number, mean in enumerate(network.statistics[::2])}
    numpy.savez(folder / f"{name}-tensorflow.npz", loss=loss.numpy(), starts=starts, **results)


if __name__ == "__main__":
    for model_name in sys.argv[2:]:
        if (Path(sys.argv[1]) / f"{model_name}.npz").exists():
            step(Path(sys.argv[1]), model_name)
    print(json.dumps({name: count(name) for name in sys.argv[2:]}))
