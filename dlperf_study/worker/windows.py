"""The timed windows of a run, in the order they are measured."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from dlperf_study.evidence.rank_log_writer import (
    EXCHANGE,
    TRAINING,
    TimedWindow,
    part_of_exchange,
)
from dlperf_study.frameworks._base import Trainer

#: Steps of a new mode before its window, so that the window includes no first call.
SETTLING_STEPS = 2
#: Bytes of the smallest exchange, about one packet, and how many sizes there are from it to all gradients.
SMALLEST_EXCHANGE, EXCHANGE_SIZES = 4096, 5


def measure(trainer: Trainer, name: str, step: Callable[[], Any], steps: int) -> TimedWindow:
    """Time ``steps`` calls of ``step`` after a barrier; nothing is read or written in between."""
    losses = []
    trainer.barrier()
    stopwatch = trainer.stopwatch()
    stopwatch.mark()
    for _ in range(steps):
        losses.append(step())
        stopwatch.mark()
    seconds = stopwatch.seconds()
    return TimedWindow(name, seconds, [trainer.loss_value(loss) for loss in losses if loss is not None])


def training_window(trainer: Trainer, steps: int) -> TimedWindow:
    """Measure steps of training, which begin with nothing pending: what is pending at their end belongs to them."""
    trainer.settle()
    return measure(trainer, TRAINING, trainer.train_step, steps)


def exchange_windows(trainer: Trainer, gradient_bytes: int, steps: int) -> Iterator[TimedWindow]:
    """Measure the exchange alone, of parts of the gradients and of all, where there is one."""
    if trainer.exchange_kind == "none" or not steps:
        return
    sizes = exchange_sizes(gradient_bytes) if trainer.exchange_kind == "all_reduce" else [gradient_bytes]
    for size in sizes:
        exchange = trainer.exchange(size)
        settle_in(exchange)
        name = EXCHANGE if size == gradient_bytes else part_of_exchange(size)
        window = measure(trainer, name, exchange, steps)
        yield replace(window, bytes=size)


def computation_window(trainer: Trainer, name: str, steps: int) -> Iterator[TimedWindow]:
    """Measure steps without exchange, where there is one to leave out; they leave no trace in what is trained.

    A half before the training window and a half after it: what drifts from one to the other has the same mean as what
    drifts through the window between them.
    """
    if trainer.exchange_kind == "none" or not steps:
        return
    trainer.settle()
    with trainer.local_updates():
        settle_in(trainer.computation_step)
        window = measure(trainer, name, trainer.computation_step, steps)
    yield window


def exchange_sizes(gradient_bytes: int) -> list[int]:
    """Return sizes in bytes, in geometric progression from 4 KiB to all gradients; fewer for a few gradients.

    All but the last are multiples of four bytes, so that no element of a gradient is cut.
    """
    factor = (gradient_bytes / SMALLEST_EXCHANGE) ** (1 / (EXCHANGE_SIZES - 1))
    sizes = {4 * round(SMALLEST_EXCHANGE * factor**k / 4) for k in range(EXCHANGE_SIZES - 1)}
    return [*sorted(size for size in sizes if size < gradient_bytes), gradient_bytes]


def settle_in(step: Callable[[], Any]) -> None:
    """Do a few steps of another kind than before, so that the window of them includes no first call."""
    for _ in range(SETTLING_STEPS):
        step()
