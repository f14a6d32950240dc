"""Whether the samples that a node agent takes are seen in the steps, and what one costs.

Launch from the root of the project: ``python -m benchmarks.telemetry [--device gpu] [--rounds 12]``. One process per
core (or one on the GPU, with PyTorch) multiplies matrices step by step; another one samples as a node agent does, or
only waits as often. Blocks with and without samples alternate in random order, round by round. It prints the ratio of
the mean steps with its 95 % interval, and the CPU time of a sample; it ends with 1 if the steps are shown to be more
than 0.5 % longer.
"""

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dlperf_study.machines.cluster.hardware import usable_cpus, usable_gpus
from dlperf_study.machines.node_agent.agent import POLL_SECONDS
from dlperf_study.machines.node_agent.telemetry import Telemetry
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.metrics.statistics import Estimate

#: The order of the matrices, on a core and on a GPU: steps of some milliseconds.
CPU_SIZE, GPU_SIZE = 384, 8192
LIMIT = 0.005


def main() -> int:
    """Measure blocks in turn; return 1 when samples are seen in the steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a block")
    options = parser.parse_args()
    gpus = [gpu.uuid for gpu in usable_gpus(None)[:1]] if options.device == "gpu" else []
    log_ratios, cost = [], 0.0
    # Nothing that these processes have may be forked: CUDA does not survive it.
    context = multiprocessing.get_context("spawn")
    with machine_lock("benchmarks"), Sampler(context, gpus) as sampler, Workers(context, options.device) as workers:
        workers.step_seconds(options.seconds)
        for _ in range(options.rounds):
            means = {}
            for is_sampling in random.sample((True, False), 2):
                sampler.switch(is_sampling)
                means[is_sampling] = workers.step_seconds(options.seconds)
            cost = sampler.switch(False)
            log_ratios.append(np.log(means[True] / means[False]))
    estimate = Estimate.from_values(np.array(log_ratios))
    interval = estimate.factor_interval()
    assert interval is not None
    print(f"step with samples / without: {estimate.factor:.4f} [{interval.low:.4f}, {interval.high:.4f}]")
    print(f"CPU time of a sample: {1e3 * cost:.2f} ms, once a second")
    return int(interval.low > 1 + LIMIT)


class Process:
    """A process that answers each message."""

    def __init__(self, context: Any, target: Callable[..., None], *arguments: object) -> None:
        self._connection, other = context.Pipe()
        self._process = context.Process(target=target, args=(other, *arguments), daemon=True)
        self._process.start()

    def send(self, message: object) -> None:
        """Send a message."""
        self._connection.send(message)

    def receive(self) -> Any:
        """Return the next answer."""
        return self._connection.recv()

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


class Sampler:
    """The process that samples as a node agent does, while it is switched on."""

    def __init__(self, context: Any, gpus: list[str]) -> None:
        self._process = Process(context, _sample, gpus)

    def __enter__(self) -> "Sampler":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.end()

    def switch(self, is_sampling: bool) -> float:
        """Switch samples on or off; return the CPU seconds of a sample so far."""
        self._process.send(is_sampling)
        return float(self._process.receive())


def _sample(connection: Connection, gpus: list[str]) -> None:
    telemetry, is_sampling, cpu_seconds, samples = Telemetry(gpus, "benchmark"), False, 0.0, 0
    while True:
        # A node agent that does not sample wakes up as often, to watch its processes.
        if connection.poll(POLL_SECONDS):
            is_sampling = connection.recv()
            connection.send(cpu_seconds / max(samples, 1))
        before = time.process_time()
        if is_sampling and telemetry.sample_if_due():
            cpu_seconds, samples = cpu_seconds + time.process_time() - before, samples + 1


class Workers:
    """The processes that compute, all at once."""

    def __init__(self, context: Any, device: str) -> None:
        target, count = (_multiply_on_gpu, 1) if device == "gpu" else (_multiply, usable_cpus())
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = "1"
        self._processes = [Process(context, target) for _ in range(count)]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.end()

    def step_seconds(self, seconds: float) -> float:
        """Let all compute for so long; return the mean step of the slowest."""
        for process in self._processes:
            process.send(seconds)
        return max(process.receive() for process in self._processes)


def _multiply(connection: Connection) -> None:
    matrix = np.random.default_rng(0).standard_normal((CPU_SIZE, CPU_SIZE)).astype(np.float32)
    _answer(connection, lambda: matrix @ matrix)


def _multiply_on_gpu(connection: Connection) -> None:
    import torch

    matrix = torch.randn(GPU_SIZE, GPU_SIZE, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        matrix @ matrix
        torch.cuda.synchronize()

    _answer(connection, step)


def _answer(connection: Connection, step: Callable[[], object]) -> None:
    """Answer each number of seconds with the mean duration of the steps that it took."""
    while True:
        seconds = connection.recv()
        begin, steps = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            step()
            steps += 1
        connection.send((time.perf_counter() - begin) / steps)


if __name__ == "__main__":
    sys.exit(main())
