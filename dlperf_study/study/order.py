"""The order in which the runs of a plan are measured: rounds of all configurations in pairs, or blocks.

The order of an odd round is shuffled, and that of the next one is its reverse. Then every configuration was measured as
early as late in the two, and a linear drift of the machine is no difference between them. Two configurations in rounds
that are each shuffled would be in the same order in all of three rounds in a quarter of the studies.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import INTERLEAVED, SEQUENTIAL, Turn
from dlperf_study.study.plan import Plan


@dataclass(frozen=True)
class PlannedExecution:
    """One execution of the notebook: repetitions of a configuration at a turn."""

    configuration: Configuration
    repetitions: tuple[int, ...]
    turn: Turn


def planned_executions(plan: Plan) -> list[PlannedExecution]:
    """Return every execution that a plan requests, in order."""
    configurations = [entry.configuration for entry in plan.runnable]
    if plan.order == SEQUENTIAL:
        return [
            PlannedExecution(configuration, tuple(range(1, configuration.repetitions + 1)), Turn(SEQUENTIAL))
            for configuration in configurations
        ]
    executions: list[PlannedExecution] = []
    rounds = max((configuration.repetitions for configuration in configurations), default=0)
    for round_number in range(1, rounds + 1):
        in_round = [configuration for configuration in configurations if configuration.repetitions >= round_number]
        executions += planned_round(in_round, plan.order_seed, round_number)
    return executions


def planned_round(
    configurations: Sequence[Configuration], order_seed: int, round_number: int
) -> Iterator[PlannedExecution]:
    """Yield one repetition of each configuration, in the order of a round.

    A round of an even number has the reversed order of the one before it.
    """
    odd_round = round_number - (round_number % 2 == 0)
    shuffled = sorted(configurations, key=lambda configuration: _draw(configuration, order_seed, odd_round))
    if round_number % 2 == 0:
        shuffled.reverse()
    for position, configuration in enumerate(shuffled, start=1):
        yield PlannedExecution(configuration, (round_number,), Turn(INTERLEAVED, round_number, position))


def _draw(configuration: Configuration, order_seed: int, round_number: int) -> bytes:
    """Return the sort key that a configuration drew in a round.

    A digest is the same with every version of Python, and what one configuration draws depends on no other one: a
    study that gets a further configuration keeps the order of those it had.
    """
    return hashlib.sha256(f"{order_seed}/{round_number}/{configuration.configuration_id}".encode()).digest()
