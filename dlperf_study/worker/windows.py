"""The timed windows of a run, in the order they are measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dlperf_study.frameworks._base import Trainer
from dlperf_study.study.configuration import Configuration

#: Steps run before the computation and the exchange window, so that neither pays for its first call.
SETTLING_STEPS = 2


@dataclass(frozen=True)
class Window:
    """Measured steps of one kind: ``step_seconds`` and ``losses`` hold one value per step."""

    name: str
    step_seconds: list[float]
    losses: list[float]
    bytes: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds from the barrier to the end of the last step."""
        return sum(self.step_seconds)


def measure(trainer: Trainer, name: str, step: Callable[[], Any], steps: int) -> Window:
    """Time ``steps`` calls of ``step`` behind a barrier; nothing is read or written in between."""
    losses = []
    trainer.barrier()
    stopwatch = trainer.stopwatch()
    stopwatch.mark()
    for _ in range(steps):
        losses.append(step())
        stopwatch.mark()
    seconds = stopwatch.seconds()
    return Window(name, seconds, [trainer.loss_value(loss) for loss in losses if loss is not None])


def training_windows(trainer: Trainer, configuration: Configuration) -> Iterator[Window]:
    """Measure the warm-up and the training window."""
    yield measure(trainer, "warmup", trainer.train_step, configuration.warmup_steps)
    yield measure(trainer, "training", trainer.train_step, configuration.measured_steps)


def breakdown_windows(trainer: Trainer, configuration: Configuration, exchanged_bytes: int) -> Iterator[Window]:
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
        yield Window(exchange.name, exchange.step_seconds, [], exchanged_bytes)


def _settle(step: Callable[[], Any]) -> None:
    for _ in range(SETTLING_STEPS):
        step()
