"""The warm-up, which goes on until steps are alike, and the number of steps of the training window after it.

The ranks agree on every number of steps before these begin: a rank with one step more would wait forever for the
exchange of the others.
"""

import math
from dataclasses import replace
from statistics import median

from dlperf_study.evidence.rank_log_writer import WARMUP, TimedWindow, WarmupEnd
from dlperf_study.frameworks._base import Trainer
from dlperf_study.study.configuration import MAX_STEPS, Configuration
from dlperf_study.worker.feed import Feed
from dlperf_study.worker.windows import measure

#: The warm-up goes on in blocks of this many steps; it ends when the medians of its last two blocks are alike.
BLOCK_STEPS = 5
#: By how much these medians may differ, relative to the smaller one.
TOLERATED_DIFFERENCE = 0.05


def warm_up(trainer: Trainer, feed: Feed, configuration: Configuration) -> TimedWindow:
    """Train ``warmup_steps``, then on until steps are alike on all ranks, within ``max_warmup_seconds``."""
    warmup = measure(trainer, WARMUP, feed.train, configuration.warmup_steps, feed)
    while not (end := _end(trainer, configuration, warmup)):
        warmup = _joined(warmup, measure(trainer, WARMUP, feed.train, BLOCK_STEPS, feed))
    return replace(warmup, ended_by=end)


def training_steps(trainer: Trainer, configuration: Configuration, warmup: TimedWindow) -> int:
    """Return how many steps the training window has, the same number on every rank.

    They are ``measured_steps``, or as many as take ``measured_seconds`` if these are more: at the pace of the fastest
    of the warm-up's last steps, so that the window is rather too long than too short.
    """
    if not configuration.measured_seconds:
        return configuration.measured_steps
    fastest_seconds = min(warmup.step_seconds[-BLOCK_STEPS:])
    steps = int(trainer.agreed_maximum(math.ceil(configuration.measured_seconds / fastest_seconds)))
    return min(max(steps, configuration.measured_steps), MAX_STEPS)


def difference_of_blocks(step_seconds: list[float]) -> float:
    """Return by how much the medians of the last two blocks differ, relative to the smaller; infinite without two."""
    if len(step_seconds) < 2 * BLOCK_STEPS:
        return math.inf
    earlier, last = median(step_seconds[-2 * BLOCK_STEPS : -BLOCK_STEPS]), median(step_seconds[-BLOCK_STEPS:])
    return abs(last - earlier) / min(last, earlier)


def _end(trainer: Trainer, configuration: Configuration, warmup: TimedWindow) -> WarmupEnd | None:
    """Return why the warm-up ends here, on all ranks; None if it goes on."""
    if not configuration.max_warmup_seconds:
        return WarmupEnd.STEPS
    if trainer.agreed_maximum(difference_of_blocks(warmup.step_seconds)) <= TOLERATED_DIFFERENCE:
        return WarmupEnd.STEADY
    seconds_with_block = warmup.seconds + BLOCK_STEPS * median(warmup.step_seconds[-BLOCK_STEPS:])
    if trainer.agreed_maximum(seconds_with_block) > configuration.max_warmup_seconds:
        return WarmupEnd.LIMIT
    return None


def _joined(first: TimedWindow, second: TimedWindow) -> TimedWindow:
    step_seconds, losses = first.step_seconds + second.step_seconds, first.losses + second.losses
    input_seconds = [*(first.input_seconds or ()), *(second.input_seconds or ())]
    skipped = None if first.skipped_steps is None else first.skipped_steps + (second.skipped_steps or 0)
    joined = replace(first, step_seconds=step_seconds, losses=losses, input_seconds=input_seconds)
    return replace(joined, skipped_steps=skipped)
