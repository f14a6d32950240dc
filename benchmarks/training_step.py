"""A training step through our worker against the same model in a bare loop: the ratio must stay within 1 %.

Both loops run in one process and alternate, so that the machine's noise falls on both alike. Noise only ever adds time,
so the ratio is that of the lower quartiles of both; a new process per framework, because Paddle's two modes exclude
each other.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from dlperf_study.machines.cluster.software import library_versions, software
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import frameworks
from dlperf_study.training.questions import packages, packages_of_libraries
from dlperf_study.training.worker.feed import Feed
from dlperf_study.training.worker.windows import measure

FRAMEWORKS = {
    "paddle_collective": "all_reduce",
    "paddle_ps": "local",
    "torch_ddp": "all_reduce",
    "horovod_torch": "all_reduce",
}
#: One process, threads and place included.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "FLAGS_enable_pir_api": "0", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
PAIRS = 60
STEPS = 2
WARMUP = 3
LIMIT = 0.01


def main() -> int:
    """Compare every framework; return 1 when a ratio is further from 1 than the limit."""
    if len(sys.argv) > 1:
        print(f"{ratio(sys.argv[1]):.4f}")
        return 0
    failed = False
    installed = library_versions(packages_of_libraries(), software(packages()))
    for name in FRAMEWORKS:
        if frameworks.load(name).library not in installed:
            print(f"{name}: not measured, its library is not installed; `make horovod` installs it", flush=True)
            continue
        environment = {**os.environ, **ENVIRONMENT}
        command = [sys.executable, __file__, name]
        with machine_lock("benchmarks"):
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        value = float(done.stdout.split()[-1])
        print(f"{name}: worker / bare loop = {value:.4f} (limit: 1 ± {LIMIT})", flush=True)
        failed |= abs(value - 1) > LIMIT
    return int(failed)


def ratio(name: str) -> float:
    """Return the time of a step in our window over that of a step in the bare loop, lower quartiles of both."""
    trainer, feed = trainer_of(name)
    bare = bare_loop(bare_step(name, trainer, feed))
    bare(WARMUP)
    pairs = [_pair(trainer, feed, bare, first=k % 2 == 0) for k in range(PAIRS)]
    ours, theirs = (statistics.quantiles(blocks, n=4)[0] for blocks in zip(*pairs, strict=True))
    return ours / theirs


def trainer_of(name: str) -> tuple[Any, Feed]:
    """Return the worker's trainer of a small network, and its feed."""
    configuration = Configuration(
        study="benchmark", cluster="local", framework=name, strategy=FRAMEWORKS[name], model="mobilenet_v2",
        image_size=32, classes=10, batch_per_device=4,
    )  # fmt: skip
    trainer = frameworks.load(name).trainer(configuration)
    return trainer, Feed(configuration, trainer)


def bare_step(name: str, trainer: Any, feed: Feed) -> Callable[[], Any]:
    """Return the step anybody would write, on the network, the optimiser and the batch of the worker."""
    return STEPS_OF.get(name, torch_step)(trainer, feed._batch)


def _pair(trainer: Any, feed: Feed, bare: Callable[[int], float], first: bool) -> tuple[float, float]:
    """Return the seconds of one block of each, in an order that alternates."""
    ours = measure(trainer, "training", feed.train, STEPS, feed).seconds if first else 0.0
    theirs = bare(STEPS)
    ours = ours or measure(trainer, "training", feed.train, STEPS, feed).seconds
    return ours, theirs


def bare_loop(step: Callable[[], Any]) -> Callable[[int], float]:
    """Return the loop anybody would write around a step; it returns the seconds of so many steps."""

    def run(steps: int) -> float:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        return time.perf_counter() - start

    return run


def paddle_step(trainer: Any, batch: Any) -> Callable[[], Any]:
    """Return the step anybody would write in Paddle, on the same network, optimiser and batch."""
    optimizer = trainer.train_step.optimizer
    return _eager_step(trainer, batch, optimizer, optimizer.clear_grad)


def torch_step(trainer: Any, batch: Any) -> Callable[[], Any]:
    """Return the step anybody would write in PyTorch, on the same network, optimiser and batch."""
    optimizer = trainer.train_step.optimizer
    return _eager_step(trainer, batch, optimizer, optimizer.zero_grad)


def _eager_step(trainer: Any, batch: Any, optimizer: Any, clear: Callable[[], Any]) -> Callable[[], Any]:
    model = trainer.layer

    def step() -> None:
        model(*batch).backward()
        optimizer.step()
        clear()

    return step


def executor_step(trainer: Any, batch: Any) -> Callable[[], Any]:
    """Return one run of Paddle's executor, on the same program and batch."""
    program, loss = trainer._program.main, trainer._program.loss
    return partial(trainer._executor.run, program, feed=batch, fetch_list=[loss], return_numpy=False)


STEPS_OF = {"paddle_collective": paddle_step, "paddle_ps": executor_step}


if __name__ == "__main__":
    sys.exit(main())
