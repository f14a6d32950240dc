"""A small network of PaddlePaddle on any number of processes, as paddle.distributed.launch starts them."""

import argparse

import paddle
from paddle.nn import Linear, ReLU, Sequential
from paddle.nn.functional import cross_entropy

from dlperf_study.record import Recorder


def main() -> None:
    """Train on random samples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    paddle.distributed.init_parallel_env()
    model = paddle.DataParallel(Sequential(Linear(32, options.width), ReLU(), Linear(options.width, 10)))
    optimizer = paddle.optimizer.SGD(0.01, parameters=model.parameters())
    recorder = Recorder(model)
    for _ in range(options.steps):
        inputs, labels = paddle.randn([options.batch_size, 32]), paddle.randint(0, 10, [options.batch_size])
        loss = cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if not recorder.step(loss):
            break


if __name__ == "__main__":
    main()
