"""Builds BERT in TensorFlow, in a process without Paddle: ``tensorflow_transformer.py FOLDER``.

It gives the network the parameters of FOLDER/given.npz, computes loss and gradients of the batch there, updates three
times by AdamW with these gradients, and writes all to FOLDER/computed.npz.
"""

import sys
from pathlib import Path

import numpy

from dlperf_study.training import models
from dlperf_study.training.libraries._tensorflow_updates import Optimizer
from dlperf_study.training.libraries.tensorflow import TensorFlow
from tests.training.models.test_transformers import configuration

UPDATES = 3


def main(folder: Path) -> None:
    given = numpy.load(folder / "given.npz")
    requested = configuration("bert_tiny", optimizer="adamw")
    network = models.load("bert_tiny").builder("tensorflow")(requested, 0, 1)
    for number, parameter in enumerate(network.parameters):
        parameter.assign(given[f"parameter_{number}"])
    batch = tuple(given[f"batch_{number}"] for number in range(4))
    loss, gradients = TensorFlow(requested).loss_and_gradients(network, batch)
    optimizer = Optimizer(requested, network.parameters)
    for _ in range(UPDATES):
        optimizer.begin()
        for parameter, gradient, kept in zip(network.parameters, gradients, optimizer.kept, strict=True):
            optimizer.update(parameter, gradient, *kept)
    results = {f"gradient_{number}": gradient.numpy() for number, gradient in enumerate(gradients)}
    results |= {f"updated_{number}": parameter.numpy() for number, parameter in enumerate(network.parameters)}
    numpy.savez(folder / "computed.npz", loss=loss.numpy(), **results)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
