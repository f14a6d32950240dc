"""Steps with pieces of arithmetic between them against the same steps without: at most 1.003 of the time.

Launch from the root of the project: ``python -m benchmarks.pieces [--seconds 60]``. Blocks of steps with a piece after
each alternate with blocks without any, in random order, so that the machine's noise falls on both alike. It comes and
goes within seconds and mostly adds time, so the ratio is that of the lower quartiles of both, with an interval from
resampled pairs of blocks. On one rank and on two, in processes of their own.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.programs import frameworks
from dlperf_study.programs.frameworks._base import Trainer
from dlperf_study.programs.worker.feed import Feed
from dlperf_study.programs.worker.pace import Pace
from dlperf_study.programs.worker.windows import measure
from dlperf_study.study.configuration import Configuration

STEPS, WARMUP_STEPS, RESAMPLED = 4, 10, 1000
LIMIT = 1.003
CONFIGURATION = Configuration(
    study="benchmark", cluster="local", framework="paddle_collective", strategy="all_reduce", model="mobilenet_v2",
    image_size=32, classes=10, batch_per_device=4,
)  # fmt: skip


def main() -> int:
    """Compare on one rank and on two; return 1 unless both ratios are shown to be within the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each comparison")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        measure_rank(options.seconds, options.folder)
        return 0
    is_good = True
    for ranks in (1, 2):
        with machine_lock("benchmarks"):
            pairs = measured_pairs(ranks, options.seconds)
        ratio, low, high = ratio_of(pairs)
        text = f"{ranks} ranks: with / without pieces = {ratio:.4f}, 95 % interval [{low:.4f}, {high:.4f}]"
        print(f"{text}, {len(pairs)} pairs of blocks: {judged(low, high)}", flush=True)
        is_good = is_good and high <= LIMIT
    return int(not is_good)


def judged(low: float, high: float) -> str:
    """Return what an interval of the ratio says of the limit."""
    if low <= LIMIT < high:
        return f"not shown to be within {LIMIT}: measure for longer, with nothing else running"
    return f"{'within' if high <= LIMIT else 'beyond'} {LIMIT}"


def measured_pairs(ranks: int, seconds: float) -> Floats:
    """Return the seconds of the steps of the slowest rank [pairs of blocks, with and without, steps]."""
    with tempfile.TemporaryDirectory() as folder:
        launcher = ("-m", "paddle.distributed.launch", "--nproc_per_node", str(ranks), "--enable_gpu_log", "0")
        files = ("--log_dir", folder, __file__, "--seconds", str(seconds), "--folder", folder)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()}
        subprocess.run([sys.executable, *launcher, *files], env=environment, check=True, capture_output=True)
        logs = [json.loads(path.read_text()) for path in Path(folder).glob("rank-*.json")]
    assert len(logs) == ranks, "a rank ended early"
    slowest: Floats = np.max(logs, axis=0)
    return slowest


def measure_rank(seconds: float, folder: Path) -> None:
    """Be one rank: measure pairs of blocks, and write the seconds of their steps."""
    configuration = replace(CONFIGURATION, devices_per_node=int(os.environ["PADDLE_TRAINERS_NUM"]))
    trainer: Any = frameworks.load(configuration.framework).trainer(configuration)
    feed = Feed(configuration, trainer)
    measure(trainer, "warmup", feed.train, WARMUP_STEPS, feed)
    # All ranks draw the same order, and end after the same pair.
    order, pairs = random.Random(0), []
    end = trainer.agreed_maximum(time.monotonic()) + seconds
    while trainer.agreed_maximum(time.monotonic()) < end:
        pairs.append(_pair(trainer, feed, first=order.random() < 0.5))
    (folder / f"rank-{trainer.rank}.json").write_text(json.dumps(pairs))


def _pair(trainer: Trainer, feed: Feed, first: bool) -> tuple[list[float], list[float]]:
    """Return the seconds of the steps of a block with pieces and of one without, in either order."""
    blocks = {}
    for has_pieces in (first, not first):
        pace = Pace(1) if has_pieces else None
        if pace:
            # Its first step too is after a piece.
            pace.measure(trainer)
        else:
            feed.train()
        blocks[has_pieces] = measure(trainer, "training", feed.train, STEPS, feed, pace).step_seconds
    return blocks[True], blocks[False]


def ratio_of(pairs: Floats) -> tuple[float, float, float]:
    """Return the ratio of the lower quartiles of steps with and without pieces, and the bounds of its interval."""
    generator = np.random.default_rng(0)
    ratios = []
    for _ in range(RESAMPLED):
        chosen = pairs[generator.integers(len(pairs), size=len(pairs))]
        ratios.append(_quartile(chosen[:, 0]) / _quartile(chosen[:, 1]))
    low, high = np.quantile(ratios, (0.025, 0.975))
    return _quartile(pairs[:, 0]) / _quartile(pairs[:, 1]), float(low), float(high)


def _quartile(step_seconds: Floats) -> float:
    return float(np.quantile(step_seconds, 0.25))


if __name__ == "__main__":
    sys.exit(main())
