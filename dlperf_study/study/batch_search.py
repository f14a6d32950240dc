"""The largest batch per device that fits in memory: a bisection over short runs, each a trial of one batch.

Where a batch is divided into micro-batches, of which a device computes one at a time, only its multiples are tried.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dlperf_study.core.wording import counted
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import RunStatus
from dlperf_study.study.plan import Plan

#: Steps of a trial's warm-up and of its window: what they need of memory, all further ones need too.
WARMUP_STEPS, STEPS = 2, 2


@dataclass(frozen=True)
class BatchSearch:
    """The state of a search for the largest batch up to ``at_most``.

    ``fitting``: the largest batch that trained, 0 where none has. ``too_large``: the smallest that did not fit, None
    where none has. ``trials``: how many runs showed that.
    """

    at_most: int
    fitting: int = 0
    too_large: int | None = None
    trials: int = 0
    micro_batches: int = 1

    @property
    def largest_micro_batch(self) -> int:
        """The samples computed at once in the largest batch that trained."""
        return self.fitting // self.micro_batches

    @property
    def next_batch(self) -> int | None:
        """The batch to try next, the largest first; None at the end."""
        if self.too_large is None and not self.fitting:
            return self._sizes * self.micro_batches
        if self.too_large is not None and self._sizes > 1:
            return self.fitting + self._sizes // 2 * self.micro_batches
        return None

    @property
    def trials_left(self) -> int:
        """How many trials are left at most."""
        if self.next_batch is None:
            return 0
        return (self._sizes - 1).bit_length() + (self.too_large is None)

    @property
    def _sizes(self) -> int:
        """How many multiples are above ``fitting`` and may fit."""
        return ((self.too_large or self.at_most) - self.fitting) // self.micro_batches

    def after(self, batch: int, fits: bool) -> "BatchSearch":
        """Return what is known after the trial of a batch."""
        if fits:
            return replace(self, fitting=batch, trials=self.trials + 1)
        return replace(self, too_large=batch, trials=self.trials + 1)

    @property
    def description(self) -> str:
        """What is known, in words."""
        bounds = []
        if self.next_batch is not None:
            if self.fitting:
                bounds.append(f"at least {self.fitting}")
            if self.too_large:
                bounds.append(f"below {self.too_large}")
            return ", ".join([*bounds, f"at most {counted(self.trials_left, 'short run')} left"])
        if not self.fitting:
            return f"none, out of memory at {self.micro_batches}"
        fitting = str(self.fitting)
        if self.micro_batches > 1:
            fitting += f" in {self.micro_batches} micro-batches"
        if self.too_large:
            return f"{fitting}, out of memory at {self.too_large}"
        return f"{fitting}, the largest that is tried"


def search(at_most: int, micro_batches: int, probe_outcome: Callable[[int], RunStatus | None]) -> BatchSearch:
    """Return the state of a search by the results of its trials.

    One that failed, or is missing, is the next.
    """
    bounds = BatchSearch(at_most, micro_batches=micro_batches)
    while (batch := bounds.next_batch) is not None:
        status = probe_outcome(batch)
        if status not in (RunStatus.COMPLETED, RunStatus.OUT_OF_MEMORY):
            break
        bounds = bounds.after(batch, fits=status is RunStatus.COMPLETED)
    return bounds


def trial(configuration: Configuration, batch: int) -> Configuration:
    """Return the configuration with another batch, measured for a few steps.

    A program of the user keeps its numbers of steps: its log may have one time for several of them.
    """
    steps: dict[str, Any] = {} if configuration.own_program else {"warmup_steps": WARMUP_STEPS, "measured_steps": STEPS}
    return replace(
        configuration,
        batch_per_device=batch,
        **steps,
        max_warmup_seconds=0.0,
        measured_seconds=0.0,
        compute_only_steps=0,
        communication_only_steps=0,
        input_only_steps=0,
        repetitions=1,
    )


def searched(plan: Plan) -> dict[str, Configuration]:
    """Return the first trial of each searched configuration, by identity.

    Configurations that differ only in their batch, or in how they are measured, share one search.
    """
    first_trials: dict[str, Configuration] = {}
    for entry in plan.runnable:
        if entry.is_searched:
            configuration = entry.configuration
            first_trials[configuration.configuration_id] = trial(configuration, configuration.micro_batches)
    return first_trials
