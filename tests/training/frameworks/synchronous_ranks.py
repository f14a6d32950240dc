"""Trains a few steps with synchronous servers, and keeps the parameters after each; a framework's own job starts it."""

import sys
import time

import numpy as np
import paddle
from rank_script import begin, file_of_run

from dlperf_study.training.frameworks.paddle_ps import ParameterServerTrainer


def main(steps: int) -> None:
    trainer, feed = begin()
    parameters = [trained_parameters(trainer)]
    for step in range(steps):
        # One begins a step long after the other, which must not go on without its gradient.
        time.sleep(0.1 * trainer.rank)
        # The same dropout as in the one process that averages.
        paddle.seed(step)
        feed.train()
        parameters.append(trained_parameters(trainer))
    trainer.communicate(0)()
    parameters.append(trained_parameters(trainer))
    np.save(file_of_run(f"parameters-{trainer.rank}.npy"), np.stack(parameters))
    trainer.close()


def trained_parameters(trainer: ParameterServerTrainer) -> np.ndarray:
    """Return a copy of all trained parameters in one row, sorted by name."""
    return np.concatenate([value.ravel() for value in trainer._program.parameter_values()])


if __name__ == "__main__":
    main(int(sys.argv[1]))
