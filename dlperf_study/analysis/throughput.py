"""The throughput of a run. A job is as slow as its slowest rank, so the slowest rank represents all."""

from functools import lru_cache

import numpy as np

from dlperf_study.arrays import Floats
from dlperf_study.evidence.rank_agreement import PUSH_PULL
from dlperf_study.evidence.rank_log import RankLog, Window
from dlperf_study.evidence.rank_log_writer import TRAINING, WARMUP
from dlperf_study.evidence.run import Run

#: The percentiles of the step times.
PERCENTILES = (50, 95, 99)


def throughput_of(run: Run) -> dict[str, float | None]:
    """Return the columns on the rate and the steps of a completed run."""
    window = slowest_training(run)
    return {
        "throughput": throughput(run),
        "sum_of_rank_rates": sum_of_rank_rates(run),
        "mean_of_rates": mean_of_rates(run),
        "step_seconds": makespan_seconds(run) / window.steps,
        "step_variation": step_variation(window.step_seconds),
        **step_percentiles(run),
        "drain_seconds": drain_seconds(run),
        "warmup_slowdown": warmup_slowdown(run),
        "final_loss": final_loss(run),
    }


#: The row and the diagnostics of one run call it twenty times.
@lru_cache(maxsize=1)
def slowest_training(run: Run) -> Window:
    """Return the training window of the rank whose updates were done last; every completed run has one."""
    return max(run.ranks, key=rank_seconds).windows[TRAINING]


def rank_seconds(log: RankLog) -> float:
    """Return the seconds a rank took until its updates were done: its training window and its drain."""
    return log.windows[TRAINING].seconds + float(log.end["drain_seconds"])


def makespan_seconds(run: Run) -> float:
    """Return the seconds until all updates of the training window were done: the slowest rank's."""
    return max(map(rank_seconds, run.ranks))


def throughput(run: Run) -> float:
    """Return samples/s of the whole job: global batch × measured steps / makespan."""
    return run.configuration.global_batch * slowest_training(run).steps / makespan_seconds(run)


def sum_of_rank_rates(run: Run) -> float | None:
    """Return the sum of the rates of asynchronous trainers, in samples/s: what the servers apply while all train.

    None where ranks wait for each other in each step: then their rates are one rate.
    """
    if run.ranks[0].facts["exchange"] != PUSH_PULL:
        return None
    batch = run.configuration.batch_per_device
    return sum(batch * log.windows[TRAINING].steps / rank_seconds(log) for log in run.ranks)


def mean_of_rates(run: Run) -> float:
    """Return the arithmetic mean of the slowest rank's per-step rates, in samples/s.

    Never below ``throughput``; for comparison with results that were published in this way.
    """
    return float(np.mean(run.configuration.global_batch / slowest_training(run).step_seconds))


def step_variation(step_seconds: Floats) -> float | None:
    """Return standard deviation / mean of the steps of a window; None for a single step."""
    return float(step_seconds.std(ddof=1) / step_seconds.mean()) if step_seconds.size > 1 else None


def step_percentiles(run: Run) -> dict[str, float | None]:
    """Return the median, the 95th and the 99th percentile of the job's step times, in seconds.

    Where ranks wait for each other a step of the job takes as long as that of its slowest rank; with an asynchronous
    server no rank waits for another, and the steps of all ranks count. Linear between the two nearest steps. None where
    a window has fewer steps than it takes for one of them to be beyond: 20 for the 95th, 100 for the 99th.
    """
    step_seconds = run.step_seconds(TRAINING)
    is_asynchronous = run.ranks[0].facts["exchange"] == PUSH_PULL
    steps = np.concatenate(step_seconds) if is_asynchronous else np.max(step_seconds, axis=0)
    columns: dict[str, float | None] = {}
    for percentile, seconds in zip(PERCENTILES, np.percentile(steps, PERCENTILES), strict=True):
        is_known = steps.size * (100 - percentile) >= 100
        columns[f"step_p{percentile}_seconds"] = float(seconds) if is_known else None
    return columns


def drain_seconds(run: Run) -> float:
    """Return the longest time that updates of a rank were certainly pending after its window."""
    return max(float(log.end["drain_seconds"]) for log in run.ranks)


def drain_resolution_seconds(run: Run) -> float:
    """Return by how much a drain may have been longer than its rank could see."""
    return max(float(log.end["drain_resolution_seconds"]) for log in run.ranks)


def warmup_slowdown(run: Run) -> float | None:
    """Return how many times longer the first warm-up step took than a measured one, on the slowest rank."""
    warmup = run.slowest(WARMUP)
    if warmup is None or not warmup.steps:
        return None
    return float(warmup.step_seconds[0] / np.median(slowest_training(run).step_seconds))


def final_loss(run: Run) -> float | None:
    """Return the loss of the last measured step, as the mean over ranks."""
    losses = [window.losses[-1] for window in run.windows(TRAINING) if window.losses.size]
    return float(np.mean(losses)) if losses else None
