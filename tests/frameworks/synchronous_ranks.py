"""Trains a few steps with synchronous servers, and keeps the parameters after each; a framework's own job starts it."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import paddle

from dlperf_study.programs import frameworks
from dlperf_study.programs.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE
from dlperf_study.programs.frameworks.paddle_ps import ParameterServerTrainer
from dlperf_study.programs.worker.feed import Feed
from dlperf_study.study.configuration import Configuration


def main(steps: int) -> None:
    configuration = Configuration.from_mapping(json.loads(Path(os.environ[CONFIGURATION_VARIABLE]).read_text()))
    trainer = frameworks.load(configuration.framework).trainer(configuration)
    assert isinstance(trainer, ParameterServerTrainer)
    feed = Feed(configuration, trainer)
    parameters = [trained_parameters(trainer)]
    for step in range(steps):
        # One begins a step long after the other, which must not go on without its gradient.
        time.sleep(0.1 * trainer.rank)
        # The same dropout as in the one process that averages.
        paddle.seed(step)
        feed.train()
        parameters.append(trained_parameters(trainer))
    trainer.exchange(0)()
    parameters.append(trained_parameters(trainer))
    np.save(Path(os.environ[RUN_VARIABLE]) / f"parameters-{trainer.rank}.npy", np.stack(parameters))
    trainer.close()


def trained_parameters(trainer: ParameterServerTrainer) -> np.ndarray:
    """Return a copy of all trained parameters in one row, sorted by name."""
    return np.concatenate([value.ravel() for value in trainer._program.parameter_values()])


if __name__ == "__main__":
    main(int(sys.argv[1]))
