"""How often ratios at one pace of the machine hold the truth, by simulation: the table of docs/statistics.md.

Launch from the root of the project: ``python -m benchmarks.paced_ratios [--studies 500]``. It ends with 1 if intervals
hold the truth in another share of cases than they say. Every simulated study is measured in rounds, in the order of a
real plan, and the function that makes the table of configurations makes that of it.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.coverage import RATE, run_row
from dlperf_study.core.arrays import Floats
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics.columns import TableName
from dlperf_study.study.order import planned_executions
from dlperf_study.study.plan import Entry, Plan
from tests.evidence_factory import configuration

#: Seconds of a piece; by how much two busy processes are slower, on the logarithm of it.
PIECE_SECONDS, TWO_PROCESSES = 0.003, 0.08
#: Rounds of a study, and the number of processes of each of its configurations, of which the first is the reference.
ROUNDS, PROCESSES = (4, 6, 10), (1, 1, 2, 2)
#: What the share of intervals that hold the truth must be, and how many standard errors of it chance explains.
LIMITS, ERRORS = (0.93, 0.97), 2.0
RATIOS = ("relative_throughput", "relative_throughput_as_measured")


@dataclass(frozen=True)
class Noise:
    """Standard deviations of logarithms: of the pace of a round and of a run in it, and what the piece does not feel.

    The rate is the piece to the power of ``exponent``. ``freedom``: of the t distribution of what it does not feel.
    """

    name: str
    pace: float
    rest: float
    exponent: float = -1.17
    freedom: float = 1000.0


#: The first as in ten real rounds of three configurations on a virtual machine with two cores, 5 s each.
NOISES = (
    Noise("of a virtual machine", 0.09, 0.04),
    Noise("the same, heavy tails", 0.09, 0.04, freedom=4.0),
    Noise("of the pace alone", 0.09, 0.005),
    Noise("half of it felt", 0.05, 0.10),
    Noise("not felt by the piece", 0.09, 0.10, exponent=0.0),
)


@dataclass(frozen=True)
class Setting:
    """A kind of study: its noise and its rounds."""

    noise: Noise
    rounds: int

    @property
    def plan(self) -> Plan:
        """The plan: configurations that differ in their seed."""
        points = [configuration(seed=seed, repeats=self.rounds) for seed in range(len(PROCESSES))]
        first = points[0].identity
        named = dict.fromkeys(("study", "cluster", "title", "about"), "simulated")
        entries = tuple(Entry(point, first, reference_identity=first) for point in points)
        empty = {"questions": (), "published": ()}
        return Plan(**named, **empty, scaling="weak", factors=("seed",), quick=False, entries=entries, order="rounds")

    def judged(self, number: int) -> Floats:
        """Return, of two ratios [same, other number of processes]: covered, half-width, and both as measured."""
        generator = np.random.default_rng([number, self.rounds])
        plan = self.plan
        truth, rows = self._runs(plan, generator)
        table, _ = configurations_table(plan, frame_of_rows(TableName.RUNS, rows), {})
        results = []
        for position in (1, len(PROCESSES) - 1):
            result: list[float] = []
            for ratio in RATIOS:
                low, high = np.log(table.loc[position, [f"{ratio}_low", f"{ratio}_high"]].astype(float))
                result += [low <= truth[position] <= high, (high - low) / 2]
            results.append(result)
        return np.array(results)

    def _runs(self, plan: Plan, generator: np.random.Generator) -> tuple[Floats, list[dict[str, object]]]:
        """Return the true logarithms of the ratios to the reference, and the rows of all runs."""
        processes, noise = np.array(PROCESSES), self.noise
        slowness = TWO_PROCESSES * (processes - 1)
        levels = np.array([0.0, *generator.normal(0.0, 0.2, processes.size - 1)]) + noise.exponent * slowness
        identities = [entry.configuration.identity for entry in plan.entries]
        # Configurations on one process and those on two do not share their pace.
        of_round = generator.normal(0.0, noise.pace, (3, self.rounds + 1))
        rows: list[dict[str, object]] = []
        for execution in planned_executions(plan):
            position, round_number = identities.index(execution.configuration.identity), execution.turn.round or 0
            pace = of_round[processes[position], round_number] + generator.normal(0.0, noise.pace)
            rest = generator.standard_t(noise.freedom) * np.sqrt(1 - 2 / noise.freedom)
            rate = RATE * np.exp(levels[position] + noise.exponent * pace + noise.rest * rest)
            piece = PIECE_SECONDS * np.exp(slowness[position] + pace)
            paced = {"piece_seconds": piece, "pace_state": f"{processes[position]} processes"}
            rows.append(run_row(execution.configuration, round_number, float(rate)) | paced)
        return levels, rows


def table_rows(studies: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines of the table, each with whether its intervals hold the truth as often as they say."""
    tolerance = ERRORS * np.sqrt(0.05 * 0.95 / studies)
    for noise, rounds in product(NOISES, ROUNDS):
        setting = Setting(noise, rounds)
        results = np.array([setting.judged(number) for number in range(studies)])
        for kind, of_kind in zip(("the same", "2 against 1"), results.swapaxes(0, 1), strict=True):
            shares, half_widths = 100 * of_kind[:, ::2].mean(axis=0), 100 * np.median(of_kind[:, 1::2], axis=0)
            cells = [f"{share:.1f} % | ±{width:.1f} %" for share, width in zip(shares, half_widths, strict=True)]
            line = f"| {noise.name} | {rounds} | {kind} | {cells[1]} | {cells[0]} |"
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
