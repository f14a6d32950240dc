"""How often intervals and verdicts are right where a study measures until they are narrow enough, by simulation.

Launch from the root of the project: ``python -m benchmarks.stopping_rule [--studies 100]``. It prints the table of
docs/statistics.md on precision, and ends with 1 if a row misses its limits.

Stopping when an interval happens to be narrow favours intervals that are too narrow, above all among those that stop
first: they are counted apart. The studies are like those of ``benchmarks.coverage``, and the rule is the function by
which a driver adds rounds.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.coverage import CONFIGURATIONS, RATE, autoregressive, false_limit, no_drift, plan_of
from dlperf_study.core.arrays import Floats
from dlperf_study.dataset.wanted_precision import Precision, precisions, too_wide
from dlperf_study.metrics.comparison import throughput_ratio, verdicts
from dlperf_study.metrics.statistics import Estimate, Sample
from dlperf_study.study.order import planned_round
from dlperf_study.study.plan import Plan

FIRST_ROUNDS, MOST_ROUNDS = 3, 20
#: The spread between runs, the wanted precision in spreads, and the time constant of the machine in runs, 0 for none:
#: then its speed wanders by as much as runs differ.
SPREADS, PRECISIONS, TIME_CONSTANTS = (0.01, 0.05, 0.10, 0.15), (1.0, 2.0), (0, 10)
#: Of many studies; a row may miss them by three standard errors, as if a study had three independent ratios.
COVERAGE_LIMITS, INDEPENDENT_RATIOS, ERRORS = (0.93, 0.97), 3, 3.0
#: Those that stopped first: the share of all intervals with the fewest runs.
FIRST_SHARE = 0.25


@dataclass(frozen=True)
class Machine:
    """The speeds of a machine, run by run, and of each configuration the true logarithm and the spread of its runs."""

    speeds: Floats
    truth: dict[str, float]
    spreads: dict[str, float]


@dataclass(frozen=True)
class Row:
    """One kind of study; ``time_constant``: of the machine, in runs."""

    spread: float
    precision: float
    time_constant: int

    def machine(self, plan: Plan, generator: np.random.Generator) -> Machine:
        """Return a machine on which half of the configurations are as fast as the reference, for every round."""
        identities = [entry.configuration.identity for entry in plan.entries]
        differences = generator.normal(0.0, 2 * self.spread, CONFIGURATIONS)
        differences[: CONFIGURATIONS // 2] = 0.0
        drift = autoregressive(self.time_constant, self.spread) if self.time_constant else no_drift
        return Machine(
            drift(generator, MOST_ROUNDS * CONFIGURATIONS),
            dict(zip(identities, differences.tolist(), strict=True)),
            dict.fromkeys(identities, self.spread),
        )


@dataclass
class Tally:
    """What studies say; of each interval the number of runs, and whether it holds the truth."""

    ratios: list[tuple[int, bool]] = field(default_factory=list)
    levels: list[tuple[int, bool]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, plan: Plan, machine: Machine, throughputs: dict[str, Sample]) -> None:
        """Count what a study says of its throughputs and ratios, and how often it is wrong."""
        logarithms: dict[str, Estimate] = {}
        for entry in plan.entries[1:]:
            identity = entry.configuration.identity
            truth = machine.truth[identity]
            logarithms[identity] = throughput_ratio(entry, "reference", throughputs)
            for precision in precisions(entry, throughputs):
                expected = np.log(RATE) + truth if precision.column == "throughput" else truth
                self._add_interval(precision, float(expected), plan.precision or 0.0)
        has_false_word = False
        for identity, verdict in verdicts(logarithms, plan.precision or 0.0).items():
            claimed = {"faster": 1, "slower": -1}.get(verdict.word or "", 0)
            has_false_word |= bool(claimed != 0 and np.sign(machine.truth[identity]) != claimed)
        self.counts["studies with a false word"] += has_false_word

    def _add_interval(self, precision: Precision, expected: float, wanted: float) -> None:
        interval = precision.estimate.interval()
        is_covered = interval is not None and interval.low <= expected <= interval.high
        kind = self.levels if precision.column == "throughput" else self.ratios
        kind.append((precision.runs, is_covered))
        self.counts["ended"] += precision.has_ended(wanted)
        self.counts["reached"] += precision.has_ended(wanted) and not precision.is_wider_than(wanted)


def measured(plan: Plan, machine: Machine, generator: np.random.Generator) -> dict[str, Sample]:
    """Return the throughputs of a study that adds rounds until its precision or the most rounds are reached."""
    rates: dict[str, list[float]] = {identity: [] for identity in machine.truth}
    rounds: dict[str, list[float]] = {identity: [] for identity in machine.truth}
    throughputs: dict[str, Sample] = {}
    speeds = iter(machine.speeds)
    for round_number in range(1, MOST_ROUNDS + 1):
        wanted = set(machine.truth) if round_number <= FIRST_ROUNDS else too_wide(plan, throughputs)
        configurations = [entry.configuration for entry in plan.entries if entry.configuration.identity in wanted]
        for execution in planned_round(configurations, plan.order_seed, round_number):
            identity = execution.configuration.identity
            noise = generator.normal(0.0, machine.spreads[identity])
            rates[identity].append(RATE * float(np.exp(machine.truth[identity] + next(speeds) + noise)))
            rounds[identity].append(float(round_number))
            goal = np.log1p(plan.precision)
            throughputs[identity] = Sample(np.array(rates[identity]), np.array(rounds[identity]), goal=goal)
    return throughputs


def coverages(intervals: list[tuple[int, bool]]) -> tuple[float, float]:
    """Return how many intervals hold the truth, and how many of those that stopped first."""
    runs, is_covered = (np.array(column) for column in zip(*intervals, strict=True))
    is_first = runs <= np.quantile(runs, FIRST_SHARE)
    return float(is_covered.mean()), float(is_covered[is_first].mean())


def line_of(row: Row, studies: int) -> tuple[str, bool]:
    """Return the line of the table, and whether it is within its limits."""
    tally = Tally()
    for number in range(studies):
        generator = np.random.default_rng([number, round(1e6 * row.spread), round(1e6 * row.precision)])
        plan = replace(plan_of(FIRST_ROUNDS, number), precision=row.precision, max_repeats=MOST_ROUNDS)
        machine = row.machine(plan, generator)
        tally.add(plan, machine, measured(plan, machine, generator))
    of_ratios, of_levels = coverages(tally.ratios), coverages(tally.levels)
    runs = np.mean([count for count, _ in tally.levels])
    false_studies = tally.counts["studies with a false word"] / studies
    ended = tally.counts["ended"] / (len(tally.ratios) + len(tally.levels))
    reached = tally.counts["reached"] / max(tally.counts["ended"], 1)
    # What a machine that wanders does to a level is in no interval: a level is of its minutes.
    levels = " | ".join(["–" if row.time_constant else f"{share:.1%}" for share in of_levels])
    cells = f"{row.spread:.0%} | {row.time_constant or '–'} | {row.precision:.0%} | {runs:.1f} | {ended:.0%}"
    cells += f" | {reached:.0%} | {of_ratios[0]:.1%} | {of_ratios[1]:.1%} | {levels} | {false_studies:.1%}"
    checked = of_ratios if row.time_constant else (*of_ratios, *of_levels)
    is_good = all(is_within_limits(share, studies) for share in checked)
    is_good = is_good and false_studies <= false_limit(studies)
    return f"| {cells.replace('%', ' %')} |", is_good


def is_within_limits(share: float, studies: int) -> bool:
    """Return whether a share of intervals is within the limits, as far as so many studies tell."""
    count = studies * INDEPENDENT_RATIOS * FIRST_SHARE
    slack = ERRORS * float(np.sqrt(0.05 * 0.95 / count))
    return COVERAGE_LIMITS[0] - slack <= share <= COVERAGE_LIMITS[1] + slack


def main() -> int:
    """Print the table; return 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=100, help="simulated studies of each row")
    studies = parser.parse_args().studies
    is_good = True
    for time_constant in TIME_CONSTANTS:
        for spread in SPREADS:
            for spreads in PRECISIONS:
                line, is_within = line_of(Row(spread, spreads * spread, time_constant), studies)
                print(line, "" if is_within else "<- beyond its limits", flush=True)
                is_good = is_good and is_within
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
