"""Tries what only GPUs use of TensorFlow on a CPU, in a process without Paddle, and prints JSON: {name: value}.

XLA computes channels first on a CPU, where TensorFlow's own convolutions do not.
"""

import json
import os
import socket
from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from dlperf_study.training.frameworks.tensorflow_mirrored import MirroredTrainer
from dlperf_study.training.libraries import tensorflow as tensorflow_library
from dlperf_study.training.libraries.tensorflow import TensorflowAllocator, in_memory_format
from dlperf_study.training.models._base import Model
from dlperf_study.training.models._tensorflow_layers import Layers, Network
from tests.training.frameworks.launching import configuration

SAMPLES, SIDE, CLASSES = 8, 9, 5


def network(asked: Any, rank: int = 0, world_size: int = 1) -> Network:
    """Return a network with each kind of layer that has an order of dimensions."""
    layers = Layers(asked.seed, asked.memory_format)
    first = (layers.Conv2D(3, 8, 3, padding=1), layers.BatchNorm2D(8), layers.ReLU(), layers.MaxPool2D(3, 2, padding=1))
    depthwise = (*layers.convolution_norm(8, 8, 3, groups=8), layers.AdaptiveAvgPool2D(2), layers.Flatten())
    last = (layers.Linear(32, 6), layers.BatchNorm1D(6), layers.ReLU6(), layers.Linear(6, CLASSES))
    return Network(layers, layers.Sequential(*first, *depthwise, *last))


def step(memory_format: str) -> list[Any]:
    """Return loss, gradients and statistics of one step; that with channels first is compiled by XLA."""
    planned = configuration(memory_format=memory_format)
    layers, (images, labels) = network(planned), batch()

    @tf.function(jit_compile=memory_format == "nchw" or None)
    def step_of(images: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = layers.loss(images, labels)
        return loss, tape.gradient(loss, layers.parameters)

    loss, gradients = step_of(in_memory_format(planned, tf.constant(images)))
    return [np.asarray(value).tolist() for value in (loss, *gradients, *layers.statistics)]


def batch() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    return generator.standard_normal((SAMPLES, 3, SIDE, SIDE), dtype=np.float32), np.arange(SAMPLES) % CLASSES


def scaled_training() -> dict[str, Any]:
    """Train until a step updates, then do one without finite gradients; return the scales and what changed."""
    # Only XLA has kernels for float16 on a CPU.
    parameters = {"memory_format": "nchw", "precision": "amp_fp16", "compiler": "xla", "optimizer": "momentum"}
    planned = configuration(framework="tensorflow_mirrored", loss_scaling="dynamic", **parameters)
    trainer, (images, labels) = MirroredTrainer(planned), batch()
    finite, infinite = (trainer.transfer_batch(values, labels) for values in (images, np.full_like(images, np.inf)))
    initial, computed_in, steps = trainer.parameter_checksum(), trainer.first_step(finite), 1
    while trainer.parameter_checksum() == initial and steps < 20:
        trainer.train_step(finite)
        steps += 1
    checksums, states = [initial, trainer.parameter_checksum()], [vars(trainer.loss_scaling())]
    trainer.train_step(infinite)
    checksums.append(trainer.parameter_checksum())
    states.append(vars(trainer.loss_scaling()))
    with trainer.local_updates():
        trainer.computation_step(infinite)
    restored = trainer.parameter_checksum() == checksums[-1] and vars(trainer.loss_scaling()) == states[-1]
    changed = [before != after for before, after in pairwise(checksums)]
    return {"computed_in": computed_in, "steps": steps, "states": states, "changed": changed, "restored": restored}


def be_the_only_worker() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": [address]}, "task": {"type": "worker", "index": 0}})


if __name__ == "__main__":
    be_the_only_worker()
    Model.builder = lambda self, library: network  # type: ignore[method-assign,assignment]
    # A strategy must be made before anything else.
    training = scaled_training()
    allocator = TensorflowAllocator()
    allocator.restart()
    memory = {"on_gpu": tensorflow_library.uses_gpu(), "peaks": allocator.peaks()}
    steps = {memory_format: step(memory_format) for memory_format in ("nchw", "nhwc")}
    print(json.dumps({"training": training, "steps": steps, **memory}))
