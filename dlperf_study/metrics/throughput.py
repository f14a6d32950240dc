"""Throughput of a run, by its slowest rank."""

from collections.abc import Callable
from functools import partial

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.metrics import metric
from dlperf_study.records.lines import TRAINING
from dlperf_study.records.rank_log import RankLog, Window
from dlperf_study.records.run import Run
from dlperf_study.study.communication import PUSH_PULL
from dlperf_study.study.study import COMPARISON


@metric.once_per_run
def slowest_training(run: Run) -> Window:
    """Return the training window of the last rank to finish."""
    return slowest_rank(run).windows[TRAINING]


def slowest_rank(run: Run) -> RankLog:
    """Return the log of the rank whose updates were done last."""
    return max(run.ranks, key=rank_seconds)


def rank_seconds(log: RankLog) -> float:
    """Return a rank's training window and late updates in seconds."""
    return log.windows[TRAINING].seconds + float(log.end["drain_seconds"])


def makespan_seconds(run: Run) -> float:
    """Return wall-clock seconds until the slowest rank's updates are done."""
    return max(map(rank_seconds, run.ranks))


def step_share(run: Run, seconds: float | None) -> float | None:
    """Return seconds per step as a share of a step, or None."""
    if seconds is None:
        return None
    return seconds * slowest_training(run).steps / makespan_seconds(run)


def throughput(run: Run) -> float | None:
    """Return samples/s of the job: global batch × steps / makespan."""
    if (recorded := _recorded(run, lambda window: window.samples)) is not None:
        return recorded / makespan_seconds(run)
    batch = run.configuration.global_batch
    if batch:
        return batch * slowest_training(run).steps / makespan_seconds(run)
    return None


def _recorded(run: Run, counts: Callable[[Window], Floats | None]) -> float | None:
    """Return the sum of what ranks record per step, or None."""
    recorded = [float(count.sum()) for count in map(counts, run.windows(TRAINING)) if count is not None]
    return sum(recorded) if recorded else None


def token_throughput(run: Run) -> float | None:
    """Return tokens/s of the job: tokens per step × steps / makespan."""
    if (recorded := _recorded(run, lambda window: window.tokens)) is not None:
        return recorded / makespan_seconds(run)
    program, configuration = run.facts.get("program"), run.configuration
    # Ranks that share the work on a sequence do not count it twice.
    of_sequences = configuration.global_batch * configuration.sequence_length
    tokens = program["tokens_per_step"] if program else of_sequences
    if tokens:
        return tokens * slowest_training(run).steps / makespan_seconds(run)
    return None


def device_token_throughput(run: Run) -> float | None:
    """Return tokens/s per device; None if tokens are unknown."""
    tokens = token_throughput(run)
    if tokens:
        return tokens / run.configuration.world_size
    return None


def sum_of_rank_throughputs(run: Run) -> float | None:
    """Return the summed samples/s of asynchronous trainers."""
    if run.ranks[0].facts["communication"] != PUSH_PULL:
        return None
    batch = run.configuration.batch_per_device
    return sum(batch * log.windows[TRAINING].steps / rank_seconds(log) for log in run.ranks)


def mean_step_throughput(run: Run) -> float | None:
    """Return the slowest rank's mean per-step samples/s; None if unknown."""
    recorded = []
    for window in run.windows(TRAINING):
        if window.samples is not None:
            recorded.append(window.samples)
    batch = np.sum(recorded, axis=0) if recorded else run.configuration.global_batch
    if np.any(batch):
        return float(np.mean(batch / slowest_training(run).step_seconds))
    return None


_throughput = partial(
    metric.Metric, unit="samples/s", summary=metric.Summary.GEOMETRIC, missing=(metric.only_in_tokens,)
)
METRICS = (
    _throughput(
        "throughput",
        "Throughput",
        "global batch × measured steps / wall-clock time until the last rank finishes; ingested logs: "
        "samples / seconds of the steady part",
        value=throughput,
        pages=(*metric.RATIO_PAGES, COMPARISON),
        related=("steadiness", "background_cores"),
        of_logs=True,
    ),
    _throughput(
        "token_throughput",
        "Token throughput",
        "tokens per step × measured steps / wall-clock time until the last rank finishes; ingested logs: "
        "tokens / seconds of the steady part",
        unit="tokens/s",
        value=token_throughput,
        missing=(),
        pages=metric.RATIO_PAGES,
        related=("steadiness", "background_cores"),
        of_logs=True,
    ),
    _throughput(
        "device_token_throughput",
        "Token throughput per device",
        "token throughput / all devices",
        unit="tokens/s",
        value=device_token_throughput,
        missing=("its samples have no tokens, or how many is not known",),
    ),
    _throughput(
        "sum_of_rank_throughputs",
        "Sum of ranks",
        "summed throughput of asynchronous ranks",
        value=sum_of_rank_throughputs,
        missing=("only trainers that push to a server and wait for no other rank have throughputs of their own",),
    ),
    _throughput(
        "mean_step_throughput",
        "Mean per-step throughput",
        "arithmetic mean of per-step throughputs, slowest rank; biased high, only for comparison with "
        "published numbers",
        value=mean_step_throughput,
        pages=(metric.SCALING,),
    ),
)
