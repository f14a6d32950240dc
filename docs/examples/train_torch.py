"""A small PyTorch model on any number of processes, as torchrun, mpirun and the study itself start them."""

import argparse
import os

import torch

# Imported by DistributedDataParallel, when there is a process group, it would keep that group and the threads of gloo.
import torch.distributed.nn
from torch import distributed
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from dlperf_study.record import Recorder


def main() -> None:
    """Train on random samples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    # mpirun numbers its processes in variables of its own.
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("RANK", "0"))
    size = os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("WORLD_SIZE", "1"))
    local_rank = os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", os.environ.get("LOCAL_RANK", "0"))
    has_gpu = torch.cuda.is_available()
    backend, device = ("nccl", f"cuda:{local_rank}") if has_gpu else ("gloo", "cpu")
    distributed.init_process_group(backend, rank=int(rank), world_size=int(size))
    train(options, device)
    # The model is deleted by now, so this waits for the threads of gloo: one that is left can abort Python at its end.
    distributed.destroy_process_group()


def train(options: argparse.Namespace, device: str) -> None:
    """Train as many steps as the recorder asks for."""
    network = Sequential(Linear(32, options.width), ReLU(), Linear(options.width, 10)).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    recorder = Recorder(model)
    for _ in range(options.steps):
        inputs = torch.randn(options.batch_size, 32, device=device)
        labels = torch.randint(10, (options.batch_size,), device=device)
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not recorder.step(loss):
            break


if __name__ == "__main__":
    main()
