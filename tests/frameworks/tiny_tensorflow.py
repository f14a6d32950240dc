"""Trains a tiny network in TensorFlow as one rank.

Its argument says how: a number of steps, as ``ranks.py`` does them; ``worker``, as a run is measured; none, endlessly.

The published networks would do, but TensorFlow takes seconds to build one. This one has a convolution, a batch norm and
a linear layer, and nothing random.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import ranks

from dlperf_study.programs import frameworks
from dlperf_study.programs.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE
from dlperf_study.programs.models._base import Model
from dlperf_study.programs.models._tensorflow_layers import Layers, Network
from dlperf_study.programs.worker import __main__ as worker
from dlperf_study.programs.worker.feed import Feed
from dlperf_study.study.configuration import Configuration


def build(configuration: Any, rank: int, world_size: int) -> Network:
    layers = Layers(configuration.seed, configuration.memory_format)
    features = (*layers.convolution_norm(3, 8, 3), layers.ReLU(), layers.AdaptiveAvgPool2D(1), layers.Flatten())
    return Network(layers, layers.Sequential(*features, layers.Linear(8, configuration.classes)))


def train_endlessly() -> None:
    """Train until ended; after the first step a file says that this rank trains."""
    configuration = Configuration.from_mapping(json.loads(Path(os.environ[CONFIGURATION_VARIABLE]).read_text()))
    trainer: Any = frameworks.load(configuration.framework).trainer(configuration)
    feed = Feed(configuration, trainer)
    feed.train()
    (Path(os.environ[RUN_VARIABLE]) / f"trains-{trainer.rank}").touch()
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
