"""The largest batch per device that fits in memory: a bisection over short runs, each a trial of one batch."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dlperf_study.core.wording import counted
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Outcome
from dlperf_study.study.plan import Plan

#: Steps of a trial's warm-up and of its window: what they need of memory, all further ones need too.
WARMUP_STEPS, STEPS = 2, 2


@dataclass(frozen=True)
class BatchSearch:
    """What trials of batches from 1 to ``at_most`` have shown so far.

    ``fitting``: the largest batch that trained, 0 where none has. ``too_large``: the smallest that did not fit, None
    where none has. ``trials``: how many runs showed that.
    """

    at_most: int
    fitting: int = 0
    too_large: int | None = None
    trials: int = 0

    @property
    def next_batch(self) -> int | None:
        """The batch that is to be tried next, the largest at first; None where nothing is left to be found."""
        if self.too_large is None:
            return None if self.fitting else self.at_most
        return (self.fitting + self.too_large) // 2 if self.too_large - self.fitting > 1 else None

    @property
    def trials_left(self) -> int:
        """How many trials are left at most."""
        if self.next_batch is None:
            return 0
        if self.too_large is None:
            return 1 + (self.at_most - 1).bit_length()
        return (self.too_large - self.fitting - 1).bit_length()

    def after(self, batch: int, fits: bool) -> "BatchSearch":
        """Return what is known after the trial of a batch."""
        changed_bound = {"fitting": batch} if fits else {"too_large": batch}
        return replace(self, **changed_bound, trials=self.trials + 1)

    @property
    def description(self) -> str:
        """What is known, in words."""
        if self.next_batch is not None:
            at_least = f"at least {self.fitting}, " if self.fitting else ""
            below = f"below {self.too_large}, " if self.too_large else ""
            return f"{at_least}{below}at most {counted(self.trials_left, 'short run')} left"
        if not self.fitting:
            return "none, 1 does not fit"
        beyond = f"{self.too_large} does not fit" if self.too_large else "none larger is tried"
        return f"{self.fitting}, {beyond}"


def search(at_most: int, outcome_of: Callable[[int], Outcome | None]) -> BatchSearch:
    """Return what is known by the trials that there are; ``outcome_of`` returns how that of a batch ended.

    One that failed, or is missing, is the next.
    """
    bounds = BatchSearch(at_most)
    while (batch := bounds.next_batch) is not None:
        outcome = outcome_of(batch)
        if outcome not in (Outcome.COMPLETED, Outcome.OUT_OF_MEMORY):
            break
        bounds = bounds.after(batch, fits=outcome is Outcome.COMPLETED)
    return bounds


def trial(configuration: Configuration, batch: int) -> Configuration:
    """Return the configuration with another batch per device, measured for a few steps."""
    return replace(
        configuration,
        batch_per_device=batch,
        warmup_steps=WARMUP_STEPS,
        max_warmup_seconds=0.0,
        measured_steps=STEPS,
        measured_seconds=0.0,
        computation_steps=0,
        exchange_steps=0,
        input_steps=0,
        trace_steps=0,
        repeats=1,
    )


def searched(plan: Plan) -> dict[str, Configuration]:
    """Return the trial of a batch of 1 of each configuration that can run and is searched, by identity.

    Configurations that differ only in their batch, or in how they are measured, share one search.
    """
    first_trials: dict[str, Configuration] = {}
    for entry in plan.runnable:
        if entry.is_searched:
            first_trials[entry.configuration.identity] = trial(entry.configuration, 1)
    return first_trials
