"""How often CIs contain the true value and significance tests are right, simulated and on published repetitions.

A simulated study has the order of a real plan, and its throughputs go through the functions that compute the CIs and
tests of a study. One study of each row is also written as run records and collected: its numbers must be the same.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from dlperf_study.audit.published import load
from dlperf_study.core.arrays import Floats
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.metrics.comparison import EQUAL, FASTER, SLOWER, WIDEST_EQUALITY, Significance, significances
from dlperf_study.metrics.statistics import Estimate, Sample, log_ratio
from dlperf_study.study.order import planned_executions
from dlperf_study.study.plan import Entry, Plan
from tests.evidence_factory import Recipe, configuration, write_run

#: Half of the configurations are as fast as the baseline; the others differ by about this share.
DIFFERENCE = 0.02
#: The spread of a configuration's runs: its median, and the standard deviation of its logarithm.
RUN_SPREAD, SPREAD_OF_SPREADS = 0.005, 0.7
#: Samples/s of the baseline.
THROUGHPUT = 100.0
#: What coverage, and the share of studies with a false outcome, must be; a simulation may miss them by chance.
SMALLEST_COVERAGE, FALSE_LIMIT, ERRORS = 0.93, 0.05, 2.5
SIZES = (6, 12, 40)
#: Subsets that are drawn of each published list of runs.
SUBSETS = 200
#: Returns the logarithms of what a machine adds to the runs of a study, in the order in which they are measured.
Noise = Callable[[np.random.Generator, int], Floats]


def autoregressive(time_constant: float, deviation: float) -> Noise:
    """Return a machine whose speed wanders: AR(1) with a time constant in runs, and a deviation."""
    memory = float(np.exp(-1 / time_constant))

    def speeds(generator: np.random.Generator, runs: int) -> Floats:
        shocks = generator.normal(0.0, deviation * np.sqrt(1 - memory**2), runs)
        wandering = np.empty(runs)
        wandering[0] = generator.normal(0.0, deviation)
        for run in range(1, runs):
            wandering[run] = memory * wandering[run - 1] + shocks[run]
        return wandering

    return speeds


def two_speeds(mean_runs: float, slower: float) -> Noise:
    """Return a host with two speeds, between which it changes after some runs; ``slower``: by which share."""

    def speeds(generator: np.random.Generator, runs: int) -> Floats:
        changes = generator.random(runs) < 1 / mean_runs
        is_slow = (np.cumsum(changes) + generator.integers(2)) % 2
        return np.log(1 - slower) * is_slow

    return speeds


NOISES: dict[str, Noise] = {
    "none but that of runs": lambda generator, runs: np.zeros(runs),
    "AR(1), 10 runs, 1 %": autoregressive(10, 0.01),
    "AR(1), 30 runs, 3 %": autoregressive(30, 0.03),
    "linear fall of 3 %": lambda generator, runs: np.linspace(0.0, -0.03, runs),
    "linear fall of 30 %": lambda generator, runs: np.linspace(0.0, -0.3, runs),
    "two speeds, 30 % apart, by turns of 10 runs": two_speeds(10, 0.3),
    "two speeds, 30 % apart, in each run": two_speeds(2, 0.3),
    "one slow run in 20, by 20 %": lambda generator, runs: -0.2 * (generator.random(runs) < 0.05),
    "heavy tails (t with 3 degrees), 2 %": lambda generator, runs: 0.02 * generator.standard_t(3, runs),
    "skewed (log-normal), 5 %": lambda generator, runs: -0.05 * generator.lognormal(0.0, 0.8, runs),
    "a period of 7 runs, 3 %": lambda generator, runs: 0.03 * np.sin(2 * np.pi * np.arange(runs) / 7),
}


@dataclass(frozen=True)
class SimulatedStudy:
    """A plan, the throughputs of its configurations by round, and the true logarithm of each ratio to the baseline."""

    plan: Plan
    throughputs: dict[str, Sample]
    truth: dict[str, float]

    def ratios(self) -> dict[str, Estimate]:
        """Return the logarithms of the ratios to the baseline, which is the first configuration, by identity."""
        baseline, *compared = self.throughputs
        return {
            configuration_id: log_ratio(self.throughputs[configuration_id], self.throughputs[baseline])
            for configuration_id in compared
        }


def plan_of(configurations: int, rounds: int, order_seed: int) -> Plan:
    """Return a plan of configurations that differ in their seed; the first is baseline and reference of all."""
    points = [
        configuration(seed=seed, repetitions=rounds, warmup_steps=1, measured_steps=2) for seed in range(configurations)
    ]
    first = points[0].configuration_id
    entries = tuple(Entry(configuration=point, baseline_id=first, reference_id=first) for point in points)
    named = dict.fromkeys(("study", "cluster", "title", "about"), "simulated")
    return Plan(
        **named,
        scaling="weak",
        sections=(),
        factors=("seed",),
        published=(),
        quick=False,
        entries=entries,
        order="interleaved",
        order_seed=order_seed,
    )


def simulated(noise: Noise, configurations: int, rounds: int, generator: np.random.Generator) -> SimulatedStudy:
    """Return one study on a machine with that noise."""
    plan = plan_of(configurations, rounds, order_seed=int(generator.integers(2**32)))
    executions = planned_executions(plan)
    configuration_ids = [entry.configuration.configuration_id for entry in plan.entries]
    spreads = np.exp(generator.normal(np.log(RUN_SPREAD), SPREAD_OF_SPREADS, configurations))
    differences = generator.normal(0.0, DIFFERENCE, configurations)
    differences[: configurations // 2] = 0.0
    truth = dict(zip(configuration_ids, differences.tolist(), strict=True))
    spread_of = dict(zip(configuration_ids, spreads, strict=True))
    throughputs: dict[str, list[float]] = {configuration_id: [] for configuration_id in configuration_ids}
    for execution, speed in zip(executions, noise(generator, len(executions)), strict=True):
        configuration_id = execution.configuration.configuration_id
        logarithm = truth[configuration_id] + speed + generator.normal(0.0, spread_of[configuration_id])
        throughputs[configuration_id].append(THROUGHPUT * float(np.exp(logarithm)))
    numbers = np.arange(1.0, rounds + 1)
    return SimulatedStudy(
        plan, {name: Sample(np.array(values), numbers) for name, values in throughputs.items()}, truth
    )


def is_false(significance: Significance, truth: float) -> bool:
    """Return whether an outcome claims something false."""
    if significance.word == EQUAL:
        return abs(truth) > np.log1p(WIDEST_EQUALITY)
    claimed = {FASTER: 1, SLOWER: -1}.get(significance.word or "", 0)
    return bool(claimed != 0 and np.sign(truth) != claimed)


def row_of(name: str, configurations: int, rounds: int, studies: int) -> tuple[str, bool]:
    """Return the line of the table for a noise and the size of a study, and whether it is within its limits."""
    counts: Counter[str] = Counter()
    for number in range(studies):
        generator = np.random.default_rng([list(NOISES).index(name), configurations, rounds, number])
        study = simulated(NOISES[name], configurations, rounds, generator)
        ratios = study.ratios()
        for configuration_id, estimate in ratios.items():
            interval = estimate.interval()
            counts["covered"] += interval is not None and interval.low <= study.truth[configuration_id] <= interval.high
        statuses = significances(ratios)
        counts["false"] += any(
            is_false(statuses[configuration_id], study.truth[configuration_id]) for configuration_id in ratios
        )
        for configuration_id in ratios:
            counts["different"] += study.truth[configuration_id] != 0
            counts["found"] += (
                statuses[configuration_id].word in (FASTER, SLOWER) and study.truth[configuration_id] != 0
            )
    coverage = counts["covered"] / (studies * (configurations - 1))
    false_studies, share_found = counts["false"] / studies, counts["found"] / counts["different"]
    cells = f"{coverage:.1%} | {false_studies:.1%} | {share_found:.0%}".replace("%", " %")
    is_good = coverage >= coverage_limit(SMALLEST_COVERAGE, studies) and false_studies <= false_limit(studies)
    return f"| {name} | {configurations} | {rounds} | {cells} |", is_good


def false_limit(studies: int) -> float:
    """Return which share of so many simulated studies may have a false outcome, where 5 % of all have one."""
    return FALSE_LIMIT + ERRORS * float(np.sqrt(FALSE_LIMIT * (1 - FALSE_LIMIT) / studies))


def coverage_limit(coverage: float, studies: int) -> float:
    """Return the smallest coverage of so many simulated studies, where that of all must be ``coverage``."""
    return coverage - ERRORS * float(np.sqrt(0.05 * 0.95 / studies))


def check_evidence(study: SimulatedStudy) -> None:
    """Write the runs of a study as evidence and collect it; raise AssertionError if its numbers are different ones."""
    with tempfile.TemporaryDirectory() as folder:
        paths = StudyPaths(Path(folder))
        study.plan.write(paths.plan_file)
        batch = study.plan.entries[0].configuration.global_batch
        for entry in study.plan.entries:
            for repetition, throughput in enumerate(
                study.throughputs[entry.configuration.configuration_id].values, start=1
            ):
                recipe = Recipe(compute_seconds=batch / float(throughput), noise=0.0)
                write_run(paths, entry.configuration, repetition, recipe)
        collected = collect(paths).configurations.set_index("configuration_id")
    ratios = study.ratios()
    statuses = significances(ratios)
    for configuration_id, estimate in ratios.items():
        row, expected = collected.loc[configuration_id], estimate.bounded_factor
        printed = [row[f"speedup{bound}"] for bound in ("", "_low", "_high")]
        np.testing.assert_allclose(np.array(printed, float), np.array(expected, float), rtol=1e-9)
        assert row["baseline_significance"] == statuses[configuration_id].word


def published_groups() -> Iterator[Floats]:
    """Yield every published list of at least five runs of one configuration."""
    cells = load()
    runs = cells[(cells["estimator"] == "run") & (cells["metric"] == "throughput") & cells["runs_of"].notna()]
    for _, throughputs in runs.groupby("runs_of")["value"]:
        if len(throughputs) >= 5 and (throughputs > 0).all():
            yield throughputs.to_numpy(float)


def published_rows() -> Iterator[tuple[str, float]]:
    """Yield the lines on subsets of three published runs, and their coverage."""
    generator = np.random.default_rng(1)
    groups = list(published_groups())
    large_groups = [throughputs for throughputs in groups if len(throughputs) >= 6]
    covered = np.mean([throughput_coverage(throughputs) for throughputs in groups])
    ratios = np.mean([ratio_coverage(throughputs, generator) for throughputs in large_groups])
    yield f"| throughput, of 3 of the runs | {len(groups)} | {covered:.1%} |".replace("%", " %"), float(covered)
    line = f"| ratio of 3 of the runs to 3 others, Welch | {len(large_groups)} | {ratios:.1%} |"
    yield line.replace("%", " %"), float(ratios)


def throughput_coverage(throughputs: Floats) -> float:
    """Return how often the interval of three runs holds the mean of all runs of a list, of all subsets.

    The three are among all, and so nearer to their mean than to that of further runs: the standard error is that of a
    sample without replacement, √(1 − 3/n) times that of a sample of many.
    """
    logarithms, share = np.log(throughputs), 1 - 3 / len(throughputs)
    covered = []
    for chosen in combinations(logarithms, 3):
        estimate = Estimate.from_values(chosen)
        interval = replace(estimate, error=(estimate.error or 0.0) * np.sqrt(share)).interval()
        covered.append(interval is not None and interval.low <= logarithms.mean() <= interval.high)
    return float(np.mean(covered))


def ratio_coverage(throughputs: Floats, generator: np.random.Generator) -> float:
    """Return how often the interval of the ratio of three runs to three others of the same list holds 1."""
    covered = []
    for _ in range(SUBSETS):
        drawn = generator.permutation(throughputs)
        interval = log_ratio(Sample(drawn[:3]), Sample(drawn[3:6])).interval()
        covered.append(interval is not None and interval.low <= 0 <= interval.high)
    return float(np.mean(covered))
