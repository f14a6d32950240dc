"""Trains a tiny network in TensorFlow as one rank.

Its argument says how: a number of steps, as ``ranks.py`` does them; ``worker``, as a run is measured; none, endlessly.

The published networks would do, but TensorFlow takes seconds to build one. This one has a convolution, a batch norm and
a linear layer, and nothing random.
"""

import sys
from typing import Any

import ranks
from rank_script import begin, file_of_run

from dlperf_study.training.models._base import Model
from dlperf_study.training.models._tensorflow_layers import Layers, Network
from dlperf_study.training.worker import __main__ as worker


def build(configuration: Any, rank: int, world_size: int) -> Network:
    layers = Layers(configuration.seed, configuration.memory_format)
    features = (*layers.convolution_norm(3, 8, 3), layers.ReLU(), layers.AdaptiveAvgPool2D(1), layers.Flatten())
    return Network(layers, layers.Sequential(*features, layers.Linear(8, configuration.classes)))


def train_endlessly() -> None:
    """Train until ended; after the first step a file says that this rank trains."""
    trainer, feed = begin()
    feed.train()
    file_of_run(f"trains-{trainer.rank}").touch()
    while True:
        feed.train()


if __name__ == "__main__":
    Model.builder = lambda self, library: build  # type: ignore[method-assign,assignment]
    if len(sys.argv) == 1:
        train_endlessly()
    elif sys.argv[1] == "worker":
        worker.main()
    else:
        ranks.main(int(sys.argv[1]))
