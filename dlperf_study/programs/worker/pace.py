"""The pace of the machine: a fixed piece of arithmetic between steps, which feels what slows the machine at that time.

The same arithmetic runs on a virtual machine at 0.6 to 1 times of its best pace from second to second. The pieces are
run by the ranks themselves, all at once, since one busy process and several do not share their pace. They are outside
of the time of every step, and nothing may work on while they run: it would have finished more when the next step
begins, which would then be faster than without pieces.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from dlperf_study.evidence.writers import TimedWindow
from dlperf_study.programs.frameworks._base import Trainer
from dlperf_study.programs.worker.feed import Feed
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import PUSH_PULL

#: A piece sums so many squares, after some that are not timed: a step leaves the caches without the interpreter's own
#: data. About 3 ms and 0.5 ms.
ITERATIONS, UNTIMED_ITERATIONS = 60_000, 10_000
#: Pieces, with their barriers and sleeps, take at most this part of the time, but at least one is run.
SHARE = 0.03
#: A barrier may wake a rank on the core of the one that came last, while another core is idle: both share it for some
#: milliseconds, and their step takes 5 % longer. Who wakes from a sleep gets an idle core.
SLEEP_SECONDS = 0.0005
#: How often a pause for a piece is tried before training: other processes may hold it up.
TRIED_PIECES = 3


def arithmetic(iterations: int) -> int:
    """Return a sum of squares; integers, whose work depends on no library."""
    total = 0
    for root in range(iterations):
        total += root * root
    return total


@dataclass
class Pace:
    """The pieces of a window: one after every ``interval`` steps; ``piece_seconds`` has what each took."""

    interval: int
    piece_seconds: list[float] = field(default_factory=list)

    def blocks(self, steps: int) -> Iterator[int]:
        """Yield the numbers of steps between pieces, which add up to ``steps``."""
        for first in range(0, steps, self.interval):
            yield min(self.interval, steps - first)

    def measure(self, trainer: Trainer) -> None:
        """Run a piece, at once with all ranks, which leave it together: none waits in its next step for another's."""
        trainer.barrier()
        arithmetic(UNTIMED_ITERATIONS)
        start = time.perf_counter()
        arithmetic(ITERATIONS)
        self.piece_seconds.append(time.perf_counter() - start)
        trainer.barrier()
        time.sleep(SLEEP_SECONDS)


def pace_of(
    trainer: Trainer, feed: Feed, configuration: Configuration, device: str, warmup: TimedWindow, steps: int
) -> Pace | None:
    """Return when pieces are run among the steps of the training window, on all ranks alike; None: never.

    Never on GPUs, whose clocks are sampled; nor where updates or batches are on their way between steps; nor with a
    limit of cores, whose use is counted. At least one piece is run.
    """
    works_between_steps = trainer.exchange_kind == PUSH_PULL or feed.batches_ahead
    if device != "cpu" or works_between_steps or configuration.cpu_limit:
        return None
    pause_seconds = _pause_seconds(trainer)
    step_seconds = median(warmup.step_seconds)
    interval = math.ceil(trainer.agreed_maximum(pause_seconds / (SHARE * step_seconds)))
    return Pace(min(interval, steps))


def _pause_seconds(trainer: Trainer) -> float:
    """Return how long training pauses for a piece, with its barriers and its sleep: the shortest of some."""
    pauses = []
    for _ in range(TRIED_PIECES):
        start = time.perf_counter()
        Pace(1).measure(trainer)
        pauses.append(time.perf_counter() - start)
    return min(pauses)
