"""A small network trained with DeepSpeed, as its launcher `deepspeed` starts it."""

import argparse
import gc

import deepspeed
import torch

# Imported by DistributedDataParallel, when there is a process group, it would keep that group and the threads of gloo.
import torch.distributed.nn
from deepspeed.utils import groups
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
    train(options)
    # The last line waits for the threads of gloo, which can abort Python at its end. It does if nothing else
    # has a process group: the model, which is in cycles, or DeepSpeed, which keeps a group of its own.
    gc.collect()
    groups._WORLD_GROUP = None
    torch.distributed.destroy_process_group()


def train(options: argparse.Namespace) -> None:
    """Train as many steps as the recorder asks for."""
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
