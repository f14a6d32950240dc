"""A small network trained with Hugging Face Accelerate, as `accelerate launch` starts it."""

import argparse

import torch

# Imported by DistributedDataParallel, when there is a process group, it would keep that group and the threads of gloo.
import torch.distributed.nn
from accelerate import Accelerator
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy

from dlperf_study.record import Recorder


def main() -> None:
    """Train on random samples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    train(options, accelerator)
    # The last reference to the model is deleted here, so the next line waits for the threads of gloo: one that is left
    # can abort Python at its end.
    accelerator.free_memory()
    accelerator.end_training()


def train(options: argparse.Namespace, accelerator: Accelerator) -> None:
    """Train as many steps as the recorder asks for."""
    network = Sequential(Linear(32, options.width), ReLU(), Linear(options.width, 10))
    model, optimizer = accelerator.prepare(network, torch.optim.SGD(network.parameters(), lr=0.01))
    recorder = Recorder(model)
    for _ in range(options.steps):
        inputs = torch.randn(options.batch_size, 32, device=accelerator.device)
        labels = torch.randint(10, (options.batch_size,), device=accelerator.device)
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        if not recorder.step(loss):
            break


if __name__ == "__main__":
    main()
