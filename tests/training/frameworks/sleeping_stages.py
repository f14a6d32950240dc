"""Times steps of a pipeline whose stages only sleep, which needs no free cores. Started by a framework's own job."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from rank_script import requested, tell

from dlperf_study.training.frameworks._torch_divided import device_mesh
from dlperf_study.training.frameworks.torch_ddp import _join
from dlperf_study.training.frameworks.torch_pipeline import Pipeline

#: What a device sleeps for the forward pass of a micro-batch; for the backward pass twice as long.
SECONDS = 0.04
COUNTS, STEPS = (4, 8, 16), 3


class Sleep(torch.autograd.Function):
    """Returns its input after a while, and takes twice as long for the gradient."""

    @staticmethod
    def forward(context: Any, features: Any, seconds: float) -> Any:
        context.seconds = seconds
        time.sleep(seconds)
        return features.clone()

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        time.sleep(2 * context.seconds)
        return gradients[0], None


class Stage(torch.nn.Module):
    """A parameter and its share of the sleep; the last returns a loss."""

    def __init__(self, seconds: float, is_last: bool) -> None:
        super().__init__()
        self._seconds, self._is_last = seconds, is_last
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, features: Any, **_: Any) -> Any:
        features = Sleep.apply(features * self.weight, self._seconds)
        return features.mean() if self._is_last else features


def main() -> None:
    configuration = requested()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    _join(rank, ranks)
    count = ranks * configuration.virtual_stages
    seconds = SECONDS / configuration.virtual_stages
    stages = {position: Stage(seconds, position == count - 1) for position in range(rank, count, ranks)}
    mesh = device_mesh(configuration.layout, torch.device("cpu"))
    results = {}
    for micro_batches in COUNTS:
        changed = replace(configuration, micro_batches=micro_batches)
        pipeline = Pipeline(changed, stages, rank, torch.device("cpu"), mesh)
        results[micro_batches] = [*timed(pipeline, micro_batches)]
    tell(rank, results)
    dist.destroy_process_group()


def timed(pipeline: Pipeline, micro_batches: int) -> Iterator[float]:
    """Yield the seconds of steps after the first, in which stages tell each other their shapes."""
    batch = torch.ones(micro_batches, 2)
    for step in range(STEPS + 1):
        dist.barrier()
        begin = time.perf_counter()
        pipeline(batch, batch)
        pipeline.communication_gradients()
        dist.barrier()
        if step:
            yield time.perf_counter() - begin


if __name__ == "__main__":
    main()
