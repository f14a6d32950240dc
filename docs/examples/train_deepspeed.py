"""A small network trained with DeepSpeed, as its launcher `deepspeed` starts it."""

import argparse

import deepspeed
import torch
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy

from dlperf_study.record import Recorder


def main() -> None:
    """Train on random samples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--local_rank", type=int, default=0)
    options = parser.parse_args()
    deepspeed.init_distributed()
    network = Sequential(Linear(32, options.width), ReLU(), Linear(options.width, 10))
    settings = {"train_micro_batch_size_per_gpu": options.batch_size}
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    model, *_ = deepspeed.initialize(model=network, optimizer=optimizer, config=settings)
    recorder = Recorder(model)
    for _ in range(options.steps):
        inputs = torch.randn(options.batch_size, 32, device=model.device)
        labels = torch.randint(10, (options.batch_size,), device=model.device)
        loss = cross_entropy(model(inputs), labels)
        model.backward(loss)
        model.step()
        if not recorder.step(loss):
            break


if __name__ == "__main__":
    main()
