"""How often ratios at one pace of the machine hold the truth, by simulation: the table of docs/statistics.md.

Launch from the root of the project: ``python -m benchmarks.paced_ratios [--studies 500]``. It ends with 1 if intervals
hold the truth in another share of cases than they say. Every simulated study is measured in rounds, in the order of a
real plan, and the function that makes the table of configurations makes that of it.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.coverage import RATE, run_row
from dlperf_study.core.arrays import Floats
from dlperf_study.dataset.configuration_table import configurations_table, throughputs_of
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.dataset.wanted_precision import too_wide
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.comparison import Throughputs
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.order import planned_round
from dlperf_study.study.plan import Entry, Plan
from tests.evidence_factory import configuration

#: Seconds of a piece; by how much two busy processes are slower, on the logarithm of it.
PIECE_SECONDS, TWO_PROCESSES = 0.003, 0.08
#: Rounds of a study, and the number of processes of each of its configurations, of which the first is the reference.
ROUNDS, PROCESSES = (4, 6, 10), (1, 1, 2, 2)
#: Of studies that measure until their ratios are so precise: in how many rounds first, and at most.
PRECISION, FIRST_ROUNDS, MOST_ROUNDS = 0.2, 4, 12
#: What the share of intervals that hold the truth must be, and how many standard errors of it chance explains.
LIMITS, ERRORS = (0.93, 0.97), 2.0
RATIOS = ("relative_throughput", "relative_throughput_as_measured")


@dataclass(frozen=True)
class Noise:
    """Standard deviations of logarithms: of the pace of a round and of a run in it, and what the piece does not feel.

    The rate is the piece to the power of ``exponent``, with ``further`` more of every second configuration.
    ``freedom``: of the t distribution of what it does not feel.
    """

    name: str
    pace: float
    rest: float
    exponent: float = -1.17
    freedom: float = 1000.0
    further: float = 0.0

    def exponents(self, configurations: int) -> Floats:
        """Return the exponent of each configuration."""
        return self.exponent + self.further * (np.arange(configurations) % 2)


#: The first as in ten real rounds of three configurations on a virtual machine with two cores, 5 s each.
NOISES = (
    Noise("of a virtual machine", 0.09, 0.04),
    Noise("the same, heavy tails", 0.09, 0.04, freedom=4.0),
    Noise("of the pace alone", 0.09, 0.005),
    Noise("half of it felt", 0.05, 0.10),
    Noise("not felt by the piece", 0.09, 0.10, exponent=0.0),
    Noise("felt more by some, −1.4 and −1", 0.09, 0.04, exponent=-1.4, further=0.4),
)


@dataclass(frozen=True)
class Setting:
    """A kind of study: its noise, and its rounds; with a ``precision``, further ones until that is reached."""

    noise: Noise
    rounds: int
    precision: float | None = None

    @property
    def most_rounds(self) -> int:
        """How many rounds it has at most."""
        return MOST_ROUNDS if self.precision else self.rounds

    @property
    def plan(self) -> Plan:
        """The plan: configurations that differ in their seed."""
        points = [configuration(seed=seed, repeats=self.rounds) for seed in range(len(PROCESSES))]
        first = points[0].identity
        named = dict.fromkeys(("study", "cluster", "title", "about"), "simulated")
        entries = tuple(Entry(point, first, reference_identity=first) for point in points)
        empty = {"questions": (), "published": ()}
        wanted = {"precision": self.precision, "max_repeats": self.most_rounds} if self.precision else {}
        return Plan(
            **named, **empty, **wanted, scaling="weak", factors=("seed",), quick=False, entries=entries, order="rounds"
        )

    def judged(self, number: int) -> Floats:
        """Return, of two ratios [same, other number of processes]: covered, half-width, and both as measured."""
        plan, machine = self.plan, Machine(self, np.random.default_rng([number, self.rounds]))
        table, _ = configurations_table(plan, self._runs(plan, machine), {})
        results = []
        for position in (1, len(PROCESSES) - 1):
            result: list[float] = []
            for ratio in RATIOS:
                low, high = np.log(table.loc[position, [f"{ratio}_low", f"{ratio}_high"]].astype(float))
                result += [low <= machine.levels[position] <= high, (high - low) / 2]
            results.append(result)
        return np.array(results)

    def _runs(self, plan: Plan, machine: "Machine") -> pd.DataFrame:
        """Return the table of runs, in the order of the plan, with those that its precision needs."""
        rows: list[dict[str, object]] = []
        positions = {identity: position for position, identity in enumerate(plan.by_identity)}
        for round_number in range(1, self.most_rounds + 1):
            wanted = {*positions} if round_number <= self.rounds else too_wide(plan, _throughputs(rows, plan))
            measured = [entry.configuration for entry in plan.entries if entry.configuration.identity in wanted]
            for execution in planned_round(measured, plan.order_seed, round_number):
                rows.append(machine.run(execution.configuration, positions, round_number))
        return frame_of_rows(TableName.RUNS, rows)


def _throughputs(rows: list[dict[str, object]], plan: Plan) -> Throughputs:
    """Return those of the runs so far; a frame with all columns of a run would take ten times longer."""
    return throughputs_of(pd.DataFrame(rows).assign(token_throughput=np.nan), plan)


class Machine:
    """What makes the runs of one study: true ``levels`` [configurations], logarithms of the ratio to the reference."""

    def __init__(self, setting: Setting, generator: np.random.Generator) -> None:
        self._noise, self._generator, self._processes = setting.noise, generator, np.array(PROCESSES)
        self._exponents = setting.noise.exponents(self._processes.size)
        self._slowness = TWO_PROCESSES * (self._processes - 1)
        differences = np.array([0.0, *generator.normal(0.0, 0.2, self._processes.size - 1)])
        self.levels = differences + self._exponents * self._slowness
        # Configurations on one process and those on two do not share their pace.
        self._of_round = generator.normal(0.0, setting.noise.pace, (3, setting.most_rounds + 1))

    def run(self, measured: Configuration, positions: Mapping[str, int], round_number: int) -> dict[str, object]:
        """Return the row of one run: its rate, and its pieces."""
        position, noise, generator = positions[measured.identity], self._noise, self._generator
        processes = self._processes[position]
        pace = self._of_round[processes, round_number] + generator.normal(0.0, noise.pace)
        rest = generator.standard_t(noise.freedom) * np.sqrt(1 - 2 / noise.freedom)
        rate = RATE * np.exp(self.levels[position] + self._exponents[position] * pace + noise.rest * rest)
        piece = PIECE_SECONDS * np.exp(self._slowness[position] + pace)
        paced = {"piece_seconds": piece, "pace_state": f"{processes} processes"}
        return run_row(measured, round_number, float(rate)) | paced


def settings() -> Iterator[Setting]:
    """Yield the kinds of studies in the order of the table."""
    for noise, rounds in product(NOISES, ROUNDS):
        yield Setting(noise, rounds)
    for noise in NOISES:
        yield Setting(noise, FIRST_ROUNDS, PRECISION)


def table_rows(studies: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines of the table, each with whether its intervals hold the truth as often as they say."""
    tolerance = ERRORS * np.sqrt(0.05 * 0.95 / studies)
    for setting in settings():
        results = np.array([setting.judged(number) for number in range(studies)])
        rounds = f"to ±{100 * setting.precision:g} %" if setting.precision else f"{setting.rounds}"
        for kind, of_kind in zip(("as many", "2 against 1"), results.swapaxes(0, 1), strict=True):
            shares, half_widths = 100 * of_kind[:, ::2].mean(axis=0), 100 * np.median(of_kind[:, 1::2], axis=0)
            cells = [f"{share:.1f} % | ±{width:.1f} %" for share, width in zip(shares, half_widths, strict=True)]
            line = f"| {setting.noise.name} | {rounds} | {kind} | {cells[1]} | {cells[0]} |"
            yield line, LIMITS[0] - tolerance <= shares[0] / 100 <= LIMITS[1] + tolerance


def main() -> int:
    """Print the table; return 1 where intervals are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=500, help="simulated studies of each row")
    is_good = True
    for line, is_covered in table_rows(parser.parse_args().studies):
        print(line, "" if is_covered else "<- beyond its limits", flush=True)
        is_good = is_good and is_covered
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
