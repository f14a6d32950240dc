"""One process that computes the gradients of every rank, one after the other, and applies their mean.

Started by the job of a trainer without servers.
"""

import sys

import numpy as np
import paddle
from rank_script import file_of_run, requested

from dlperf_study.training.data_loaders._base import Consumer
from dlperf_study.training.data_loaders.synthetic_device import open_batch
from dlperf_study.training.frameworks._paddle_servers import StaticProgram
from dlperf_study.training.libraries import _base
from dlperf_study.training.libraries.paddle import Paddle


def main(steps: int, ranks: int) -> None:
    configuration = requested()
    program = StaticProgram(Paddle(configuration))
    parameters = sorted((p for p in program.main.all_parameters() if p.trainable), key=lambda p: p.name)
    gradients = [program.main.global_block().var(f"{parameter.name}@GRAD") for parameter in parameters]
    remove_updates(program.main)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(program.startup)
    rows = [joined(program.parameter_values())]
    for step in range(steps):
        of_ranks = []
        for rank in range(ranks):
            feed = program.feed(*open_batch(configuration, Consumer(rank, ranks, "paddle")).next())
            paddle.seed(step)
            of_ranks.append(executor.run(program.main, feed=feed, fetch_list=gradients))
        for parameter, *values in zip(parameters, *of_ranks, strict=True):
            update(parameter.name, np.mean(values, axis=0))
        rows.append(joined(program.parameter_values()))
    np.save(file_of_run("parameters.npy"), np.stack(rows))


def remove_updates(program: paddle.static.Program) -> None:
    block = program.global_block()
    for index in reversed(range(len(block.ops))):
        if block.ops[index].type == "sgd":
            block._remove_op(index)


def update(name: str, gradient: np.ndarray) -> None:
    tensor = paddle.static.global_scope().find_var(name).get_tensor()
    tensor.set(np.asarray(tensor) - np.float32(_base.LEARNING_RATE) * gradient, paddle.CPUPlace())


def joined(values: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([value.ravel() for value in values])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
