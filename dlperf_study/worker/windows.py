"""The timed windows of a run, in the order they are measured."""

from collections.abc import Callable, Iterator
from typing import Any

from dlperf_study.evidence.rank_log_writer import TimedWindow
from dlperf_study.frameworks._base import Trainer
from dlperf_study.study.configuration import Configuration

#: Steps before the computation and the exchange window, so that neither includes a first call.
SETTLING_STEPS = 2


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


def training_windows(trainer: Trainer, configuration: Configuration) -> Iterator[TimedWindow]:
    """Measure the warm-up and the training window."""
    yield measure(trainer, "warmup", trainer.train_step, configuration.warmup_steps)
    yield measure(trainer, "training", trainer.train_step, configuration.measured_steps)


def breakdown_windows(trainer: Trainer, configuration: Configuration, exchanged_bytes: int) -> Iterator[TimedWindow]:
    """Measure computation without exchange, and the exchange alone, when there is an exchange.

    They come after the training window and the checksum: steps without exchange let the ranks drift apart.
    A window of 0 steps is left out.
    """
    if trainer.exchange_kind == "none":
        return
    if configuration.computation_steps:
        with trainer.local_updates():
            _settle(trainer.computation_step)
            yield measure(trainer, "computation", trainer.computation_step, configuration.computation_steps)
    if configuration.exchange_steps:
        _settle(trainer.exchange)
        exchange = measure(trainer, "exchange", trainer.exchange, configuration.exchange_steps)
        yield TimedWindow(exchange.name, exchange.step_seconds, [], exchanged_bytes)


def _settle(step: Callable[[], Any]) -> None:
    for _ in range(SETTLING_STEPS):
        step()
