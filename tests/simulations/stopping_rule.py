"""How often intervals hold the true value in studies that measure until a target precision is reached, by simulation.

The rule is the one by which a study adds rounds. Coverage is required over all studies of a row; that of the studies
which end at the first look is printed, and is not required: those are the ones that are narrow by chance.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from dlperf_study.dataset.target_ci import looks_that_ended_measuring, needs_further_round, precisions
from dlperf_study.metrics.statistics import CONFIDENCE, Sample, t_quantile
from tests.simulations.coverage import THROUGHPUT, coverage_limit, plan_of

SMALLEST_COVERAGE = 0.94
#: How much wider than those of a fixed number of runs intervals may be, from 6 repeats on.
WIDEST = 1.4
#: Repeats and the most rounds; the target precision in spreads of runs; configurations.
LIMITS, TARGETS, SIZES = ((3, 12), (3, 8), (5, 20), (6, 12), (6, 24)), (0.7, 1.2, 2.0), (1, 6, 12)
SPREAD = 0.02


@dataclass(frozen=True)
class Row:
    """One kind of study; ``target``: the target precision."""

    configurations: int
    repetitions: int
    most: int
    target: float

    def line(self, studies: int) -> tuple[str, bool]:
        """Return the line of the table, and whether it is within its limits."""
        covered: list[float] = []
        widths: list[float] = []
        of_rounds = defaultdict[int, list[float]](list)
        for number in range(studies):
            rounds, looks, holds = self._study(number)
            covered += holds
            of_rounds[rounds].append(float(np.mean(holds)))
            corrected, plain = (t_quantile(1 - (1 - CONFIDENCE) / 2 / count, rounds - 1) for count in (looks, 1))
            widths.append(corrected / plain)
        coverage, width = float(np.mean(covered)), float(np.mean(widths))
        is_narrow = self.repetitions < 6 or max(widths) <= WIDEST
        is_good = is_narrow and coverage >= coverage_limit(SMALLEST_COVERAGE, studies)
        first = of_rounds.get(self.repetitions)
        share = len(first or ()) / studies
        at_first = f"{np.mean(first):.1%}" if first else "–"
        mean_rounds = sum(count * len(holds) for count, holds in of_rounds.items()) / studies
        cells = f"{self.configurations} | {self.repetitions} | {self.most} | {self.target:.1%} | {mean_rounds:.1f}"
        cells += f" | {coverage:.1%} | {width:.2f} | {share:.0%} | {at_first}"
        return f"| {cells.replace('%', ' %')} |", is_good

    def _study(self, number: int) -> tuple[int, int, list[float]]:
        """Return how many rounds a study measured, for how many looks it is corrected, and which intervals hold 0."""
        generator = np.random.default_rng([number, self.configurations, self.repetitions, round(1e6 * self.target)])
        plan = plan_of(self.configurations, self.repetitions, number)
        plan = plan.changed(target_ci=self.target, max_repetitions=self.most)
        logarithms = generator.normal(0.0, SPREAD, (self.configurations, self.most))
        configuration_ids = [entry.configuration.configuration_id for entry in plan.entries]
        rounds = self.repetitions
        while True:
            numbers = np.arange(1.0, rounds + 1)
            values = THROUGHPUT * np.exp(logarithms[:, :rounds])
            samples = {
                name: Sample(throughputs, numbers) for name, throughputs in zip(configuration_ids, values, strict=True)
            }
            if not needs_further_round(plan, samples):
                break
            rounds += 1
        looks = looks_that_ended_measuring(plan, samples)
        samples = {name: replace(sample, looks=looks) for name, sample in samples.items()}
        holds = []
        for entry in plan.entries:
            for precision in precisions(entry, samples):
                expected = np.log(THROUGHPUT) if precision.column == "throughput" else 0.0
                interval = precision.estimate.interval()
                holds.append(float(interval is not None and interval.low <= expected <= interval.high))
        return rounds, looks, holds
