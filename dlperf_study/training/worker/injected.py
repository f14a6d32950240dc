"""A slowdown of known size, planted in the steps of a study of the self-test, which must find it."""

import time
from collections.abc import Callable
from typing import Any, cast

from dlperf_study.core.paths import is_selftest
from dlperf_study.records.lines import InjectedWait
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.frameworks._base import Trainer

NANOSECONDS = 1e9


def plant_slowdown(trainer: Trainer, configuration: Configuration) -> Trainer:
    """Return the trainer, or one that waits after steps."""
    # There every trainer is replaced, also those that wait for nothing: what is compared differs in the wait alone.
    if not is_selftest(configuration.study):
        return trainer
    is_slowed = configuration.slowed_rank in (-1, trainer.rank)
    return cast(Trainer, SlowedTrainer(trainer, configuration.injected_slowdown if is_slowed else 0.0))


def injected_wait(trainer: Trainer) -> InjectedWait | None:
    """Return what a trainer waited so far, or None."""
    if isinstance(trainer, SlowedTrainer):
        return trainer.injected_wait()
    return None


class SlowedTrainer:
    """A trainer that is busy after each step: together, all steps so far take exactly ``1 + share`` times as long.

    A wait ends when all waits are that share of all steps, so the ratio is known whatever else slows the machine. What
    a wait takes too long, as another process has the core at its end, is left out of those that follow, also in the
    next window.
    """

    def __init__(self, trainer: Trainer, share: float) -> None:
        self._trainer, self._share = trainer, share
        self._steps = self._step_ns = self._waited_ns = 0

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the trainer does."""
        return getattr(self._trainer, name)

    def train_step(self, batch: Any) -> Any:
        """Do a step, then wait."""
        return self._slowed(self._trainer.train_step, batch)

    def computation_step(self, batch: Any) -> Any:
        """Do a compute-only step, then wait."""
        return self._slowed(self._trainer.computation_step, batch)

    def injected_wait(self) -> InjectedWait:
        """Return steps, their seconds, and the seconds waited."""
        step_seconds, waited = self._step_ns / NANOSECONDS, self._waited_ns / NANOSECONDS
        return {"steps": self._steps, "step_seconds": step_seconds, "waited_seconds": waited}

    def _slowed(self, step: Callable[[Any], Any], batch: Any) -> Any:
        start = time.perf_counter_ns()
        loss = step(batch)
        # A GPU is still busy when the call returns.
        self._trainer.settle()
        end = now = time.perf_counter_ns()
        self._steps += 1
        self._step_ns += end - start
        until = end + self._step_ns * self._share - self._waited_ns
        while now < until:
            now = time.perf_counter_ns()
        self._waited_ns += now - end
        return loss
