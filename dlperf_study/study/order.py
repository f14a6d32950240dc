"""The order in which the runs of a plan are measured: rounds of all configurations in pairs, or blocks.

The order of an odd round is shuffled, and that of the next one is its reverse. Then every configuration was measured as
early as late in the two, and a linear drift of the machine is no difference between them. Two configurations in rounds
that are each shuffled would be in the same order in all of three rounds in a quarter of the studies.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import INTERLEAVED, SEQUENTIAL, Turn

if TYPE_CHECKING:
    from dlperf_study.study.plan import Plan

#: After how many times the planned rounds a study with a target CI width looks at its intervals.
LOOKS = (1, 2, 4)


@dataclass(frozen=True)
class Rounds:
    """The rounds of a study.

    ``planned``: 0 if nothing can run. ``looks``: after how many rounds the intervals are compared with the target
    precision; none without one.
    """

    planned: int
    looks: tuple[int, ...] = ()

    @classmethod
    def of(cls, planned: int, target_ci: float | None, max_repetitions: int | None) -> "Rounds":
        """Return the rounds of a plan with this target CI width."""
        if target_ci is None or not planned:
            return cls(planned)
        looks = [count * planned for count in LOOKS if count * planned <= (max_repetitions or 0)]
        return cls(planned, tuple(looks))

    @property
    def most(self) -> int:
        """How many are measured at most, without those that repeat disturbed ones."""
        return max(self.looks, default=self.planned)


@dataclass(frozen=True)
class PlannedExecution:
    """One execution of the notebook: repetitions of a configuration at a turn."""

    configuration: Configuration
    repetitions: tuple[int, ...]
    turn: Turn


def planned_executions(plan: "Plan") -> list[PlannedExecution]:
    """Return every execution that a plan requests, in order."""
    executions: list[PlannedExecution] = []
    configurations = [entry.configuration for entry in plan.runnable]
    if plan.order == SEQUENTIAL:
        for configuration in configurations:
            repetitions = tuple(range(1, configuration.repetitions + 1))
            executions.append(PlannedExecution(configuration, repetitions, Turn(SEQUENTIAL)))
        return executions
    for round_number in range(1, plan.rounds.planned + 1):
        in_round = [configuration for configuration in configurations if configuration.repetitions >= round_number]
        executions += planned_round(in_round, plan.order_seed, round_number)
    return executions


def planned_round(
    configurations: Sequence[Configuration], order_seed: int, round_number: int
) -> Iterator[PlannedExecution]:
    """Yield one repetition of each configuration, in the order of a round.

    A round of an even number has the reversed order of the one before it.
    """
    is_even = round_number % 2 == 0
    # A digest is the same with every version of Python, and what one configuration draws depends on no other one: a
    # study that gets a further configuration keeps the order of those it had.
    draws = {}
    for configuration in configurations:
        drawn = f"{order_seed}/{round_number - is_even}/{configuration.configuration_id}"
        draws[hashlib.sha256(drawn.encode()).digest()] = configuration
    for position, draw in enumerate(sorted(draws, reverse=is_even), start=1):
        yield PlannedExecution(draws[draw], (round_number,), Turn(INTERLEAVED, round_number, position))
