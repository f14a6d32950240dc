"""The first steps, which prove precision and tuning, the warm-up, and the number of steps of the window after it.

The ranks agree on every number of steps before these begin: a rank with one step more would wait forever for the
communication of the others.
"""

import math
import time
from dataclasses import replace
from statistics import median
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.records.lines import WARMUP, TimedWindow, WarmupEnd
from dlperf_study.study.configuration import MAX_STEPS, Configuration
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.study.training_parameters import tuning_contradictions
from dlperf_study.training.frameworks._base import Trainer, observations
from dlperf_study.training.worker.feed import Feed
from dlperf_study.training.worker.windows import measure


def first_steps(trainer: Trainer, feed: Feed, configuration: Configuration) -> dict[str, Any]:
    """Do the first step; return its facts for the log; raises RunError."""
    trainer.barrier()
    start = time.perf_counter()
    computed_in = feed.first_step()
    trainer.barrier()
    seconds = time.perf_counter() - start
    expected = COMPUTED_IN[configuration.precision]
    if computed_in != expected:
        requested = f"precision is {configuration.precision}, which computes in {expected}"
        raise RunError(f"{requested}, but the model computed its first step in {computed_in}")
    tuning = trainer.tuning()
    for contradiction in tuning_contradictions(configuration, tuning):
        raise RunError(contradiction)
    facts = {"computed_in": computed_in, "first_steps": 1, "first_steps_seconds": seconds, "tuning": tuning}
    return facts | observations(trainer)


#: The warm-up goes on in blocks of this many steps; it ends when the medians of its last two blocks are alike.
BLOCK_STEPS = 5
#: By how much these medians may differ, relative to the smaller one.
TOLERATED_DIFFERENCE = 0.05


def warm_up(trainer: Trainer, feed: Feed, configuration: Configuration) -> TimedWindow:
    """Train until steps are alike on all ranks, within limits."""
    warmup = measure(trainer, WARMUP, feed.train, configuration.warmup_steps, feed)
    while not (end := _end(trainer, configuration, warmup)):
        warmup = _joined(warmup, measure(trainer, WARMUP, feed.train, BLOCK_STEPS, feed))
    return replace(warmup, ended_by=end)


def training_steps(trainer: Trainer, configuration: Configuration, warmup: TimedWindow) -> int:
    """Return the steps of the training window, for all ranks."""
    # They are ``measured_steps``, or as many as take ``measured_seconds`` if these are more: at the speed of the
    # fastest of the warm-up's last steps, so that the window is rather too long than too short.
    if not configuration.measured_seconds:
        return configuration.measured_steps
    fastest_seconds = min(warmup.step_seconds[-BLOCK_STEPS:])
    steps = int(trainer.agreed_maximum(math.ceil(configuration.measured_seconds / fastest_seconds)))
    return min(max(steps, configuration.measured_steps), MAX_STEPS)


def difference_of_blocks(step_seconds: list[float]) -> float:
    """Return by how much the last two blocks' medians differ."""
    if len(step_seconds) < 2 * BLOCK_STEPS:
        return math.inf
    earlier, last = median(step_seconds[-2 * BLOCK_STEPS : -BLOCK_STEPS]), median(step_seconds[-BLOCK_STEPS:])
    return abs(last - earlier) / min(last, earlier)


def _end(trainer: Trainer, configuration: Configuration, warmup: TimedWindow) -> WarmupEnd | None:
    """Return why the warm-up ends on all ranks, or None."""
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
    joined = replace(first, steps=len(step_seconds), seconds=sum(step_seconds), step_seconds=step_seconds)
    return replace(joined, losses=losses, input_seconds=input_seconds, skipped_steps=skipped)
