"""The timed windows of a run, in the order they are measured."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from dlperf_study.records import lines
from dlperf_study.study.communication import ALL_REDUCE, COLLECTIVE_KINDS, COLLECTIVES, NO_COMMUNICATION, CollectiveKind
from dlperf_study.study.layout import DIMENSIONS
from dlperf_study.training.frameworks._base import ObservedTrainer, Trainer, computation_obstacle
from dlperf_study.training.worker.feed import Feed

#: Steps of a new mode before its window, so that the window includes no first call.
SETTLING_STEPS = 2
#: Bytes of the smallest transfer, about one packet, and how many sizes there are from it to all gradients.
SMALLEST_COMMUNICATION, COMMUNICATION_SIZES = 4096, 5


def measure(
    trainer: Trainer,
    name: str,
    step: Callable[[], Any],
    steps: int,
    feed: Feed | None = None,
) -> lines.TimedWindow:
    """Time ``steps`` calls of ``step`` after a barrier."""
    # With a feed a step begins when it waits for its batch, and the device's own clock says for how long it waited: a
    # batch that arrives while the device is still busy with the step before costs no time.
    losses: list[Any] = []
    fetch = feed.fetch if feed else None
    skipped_before = _skipped_steps(trainer)
    trainer.barrier()
    begin_ns = time.perf_counter_ns()
    seconds = _timed(trainer, step, steps, fetch, losses)
    step_seconds, input_seconds = seconds, [0.0] * steps
    if fetch:
        input_seconds, work_seconds = seconds[::2], seconds[1::2]
        step_seconds = list(map(sum, zip(input_seconds, work_seconds, strict=True)))
    loss_values = [trainer.loss_value(loss) for loss in losses if loss is not None]
    skipped = _skipped_steps(trainer) - skipped_before if loss_values and trainer.loss_scaling() else None
    return lines.TimedWindow(
        name,
        steps,
        sum(step_seconds),
        step_seconds,
        loss_values,
        input_seconds if feed else None,
        skipped_steps=skipped,
        begin_ns=begin_ns,
    )


def _timed(
    trainer: Trainer, step: Callable[[], Any], steps: int, fetch: Callable[[], None] | None, losses: list[Any]
) -> list[float]:
    """Return seconds of waits and steps; add the losses."""
    stopwatch = trainer.stopwatch()
    stopwatch.mark()
    for _ in range(steps):
        if fetch:
            fetch()
            stopwatch.mark()
        losses.append(step())
        stopwatch.mark()
    return stopwatch.seconds()


def _skipped_steps(trainer: Trainer) -> int:
    """Return how many steps loss scaling has skipped so far."""
    loss_scaling = trainer.loss_scaling()
    if loss_scaling:
        return loss_scaling.skipped_steps
    return 0


def training_window(trainer: Trainer, feed: Feed, steps: int) -> lines.TimedWindow:
    """Measure training with nothing pending at its begin."""
    trainer.settle()
    return measure(trainer, lines.TRAINING, feed.train, steps, feed)


def communication_windows(trainer: Trainer, description: Mapping[str, Any], steps: int) -> Iterator[lines.TimedWindow]:
    """Measure communication alone, in parts and as a whole."""
    if trainer.communication_kind == NO_COMMUNICATION or not steps:
        return
    if trainer.communication_kind == COLLECTIVES:
        yield from _collective_windows(cast(ObservedTrainer, trainer), description["collective_operations"], steps)
        return
    gradient_bytes = description["gradient_bytes"]
    sizes = communication_sizes(gradient_bytes) if trainer.communication_kind == ALL_REDUCE else [gradient_bytes]
    for size in sizes:
        communicate = trainer.communicate(size)
        settle_in(communicate)
        name = lines.COMMUNICATION_ALONE if size == gradient_bytes else lines.part_of_communication(size)
        window = measure(trainer, name, communicate, steps)
        yield replace(window, bytes=size)


def _collective_windows(
    trainer: ObservedTrainer, collective_operations: Sequence[lines.CollectiveLine], steps: int
) -> Iterator[lines.TimedWindow]:
    """Measure collectives alone, by kind, by group, and all."""
    # Those of the only kind or group are all. Ranks may have different ones, and agree on the order by the most bytes
    # that one of them has.
    parts: list[tuple[CollectiveKind | None, str | None]] = [(kind, None) for kind in COLLECTIVE_KINDS]
    parts += [(None, group) for group in DIMENSIONS]
    largest = {part: trainer.agreed_maximum(lines.size_of_collectives(collective_operations, *part)) for part in parts}
    kinds, groups = ([part for part in parts if part[i] and largest[part]] for i in (0, 1))
    several = [part for same in (kinds, groups) if len(same) > 1 for part in same]
    for kind, group in (*sorted(several, key=largest.__getitem__), (None, None)):
        communicate = trainer.communication_alone(kind, group)
        settle_in(communicate)
        window = measure(trainer, lines.communication_window_name(kind, group), communicate, steps)
        yield replace(window, bytes=lines.size_of_collectives(collective_operations, kind, group) or None)


def computation_window(trainer: Trainer, feed: Feed, name: str, steps: int) -> Iterator[lines.TimedWindow]:
    """Measure compute-only steps, which leave no trace."""
    # A half before the training window and a half after it: what drifts from one to the other has the same mean as what
    # drifts through the window between them.
    if trainer.communication_kind == NO_COMMUNICATION or not steps or computation_obstacle(trainer):
        return
    trainer.settle()
    with trainer.local_updates():
        settle_in(feed.compute, feed)
        window = measure(trainer, name, feed.compute, steps, feed)
    yield window


def input_window(trainer: Trainer, feed: Feed, steps: int) -> Iterator[lines.TimedWindow]:
    """Measure how fast batches arrive while nothing trains."""
    # What was made ahead is taken first: it would arrive at once, and say nothing of the throughput that can be
    # sustained.
    if not feed.fetch or not steps:
        return
    for _ in range(feed.batches_ahead + SETTLING_STEPS):
        feed.fetch()
    yield measure(trainer, lines.INPUT, feed.fetch, steps)


def communication_sizes(gradient_bytes: int) -> list[int]:
    """Return sizes from 4 KiB to all gradients."""
    # All but the last are multiples of four bytes, so that no element of a gradient is cut.
    factor = (gradient_bytes / SMALLEST_COMMUNICATION) ** (1 / (COMMUNICATION_SIZES - 1))
    sizes = {4 * round(SMALLEST_COMMUNICATION * factor**k / 4) for k in range(COMMUNICATION_SIZES - 1)}
    return [*sorted(size for size in sizes if size < gradient_bytes), gradient_bytes]


def settle_in(step: Callable[[], Any], feed: Feed | None = None) -> None:
    """Do some steps, so that a window has no first call."""
    for _ in range(SETTLING_STEPS):
        if feed and feed.fetch:
            feed.fetch()
        step()
