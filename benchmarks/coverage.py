"""How often intervals and verdicts are right, by simulation and on published repetitions.

Launch from the root of the project: ``python -m benchmarks.coverage [--studies 300]``. It prints the tables of
docs/statistics.md, and ends with 1 if one of them misses its limits.

Every simulated study has 12 configurations. Its order is that of a real plan, and the same function makes the table of
configurations of it as of measured runs. One study of each row is written as evidence besides and collected from
there: the two tables must be the same.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from dlperf_study.audit.published import load
from dlperf_study.core.arrays import Floats
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.statistics import Estimate, Sample, log_ratio
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.order import planned_executions
from dlperf_study.study.plan import Entry, Plan
from tests.evidence_factory import Recipe, configuration, write_run

CONFIGURATIONS = 12
#: Half of the configurations are as fast as the reference; the others differ by about this share.
DIFFERENCE = 0.02
#: The spread of a configuration's runs: its median, and the standard deviation of its logarithm.
RUN_SPREAD, SPREAD_OF_SPREADS = 0.005, 0.7
#: Samples/s of the reference.
RATE = 100.0
#: What coverage, and the share of studies with a false verdict, must be; a simulation may miss that share by chance.
COVERAGE_LIMITS, FALSE_LIMIT, ERRORS = (0.93, 0.97), 0.05, 2.5
#: Subsets that are drawn of each published list of runs.
SUBSETS = 200
GLOBAL_BATCH = 32
Drift = Callable[[np.random.Generator, int], Floats]


def no_drift(generator: np.random.Generator, runs: int) -> Floats:
    """Return a machine that stays as it is."""
    return np.zeros(runs)


def linear_fall(generator: np.random.Generator, runs: int) -> Floats:
    """Return a machine that becomes 3 % slower during the study."""
    return np.linspace(0.0, -0.03, runs)


def autoregressive(time_constant: float, deviation: float) -> Drift:
    """Return a machine whose speed wanders: AR(1) with a time constant in runs, and a deviation."""
    memory = float(np.exp(-1 / time_constant))

    def drift(generator: np.random.Generator, runs: int) -> Floats:
        shocks = generator.normal(0.0, deviation * np.sqrt(1 - memory**2), runs)
        shocks[0] = generator.normal(0.0, deviation)
        speeds = np.empty(runs)
        speed = 0.0
        for position, shock in enumerate(shocks):
            speed = memory * speed + shock
            speeds[position] = speed
        return speeds

    return drift


DRIFTS: dict[str, Drift] = {
    "none": no_drift,
    "AR(1), tau 10 runs, sd 1 %": autoregressive(10, 0.01),
    "AR(1), tau 30 runs, sd 3 %": autoregressive(30, 0.03),
    "linear fall of 3 %": linear_fall,
}


@dataclass(frozen=True)
class SimulatedStudy:
    """A plan, the runs of it, and the true logarithm of each configuration's ratio to the reference, by identity."""

    plan: Plan
    runs: pd.DataFrame
    truth: dict[str, float]

    def configurations(self) -> pd.DataFrame:
        """Return the table of configurations, by identity."""
        return configurations_table(self.plan, self.runs, {})[0].set_index("identity")


def plan_of(rounds: int, order_seed: int) -> Plan:
    """Return a plan of configurations that differ in their seed; the first is baseline and reference of all."""
    points = [
        configuration(seed=seed, repeats=rounds, warmup_steps=1, measured_steps=2) for seed in range(CONFIGURATIONS)
    ]
    first = points[0].identity
    entries = tuple(Entry(point, first, reference_identity=first) for point in points)
    named = dict.fromkeys(("study", "cluster", "title", "about"), "simulated")
    return Plan(
        **named,
        scaling="weak",
        questions=(),
        factors=("seed",),
        published=(),
        quick=False,
        entries=entries,
        order="rounds",
        order_seed=order_seed,
    )


def simulated(drift: Drift, rounds: int, seed: tuple[int, int]) -> SimulatedStudy:
    """Return one study on a machine with that drift."""
    generator = np.random.default_rng([rounds, *seed])
    plan = plan_of(rounds, order_seed=seed[1])
    executions = planned_executions(plan)
    identities = [entry.configuration.identity for entry in plan.entries]
    spreads = np.exp(generator.normal(np.log(RUN_SPREAD), SPREAD_OF_SPREADS, CONFIGURATIONS))
    differences = generator.normal(0.0, DIFFERENCE, CONFIGURATIONS)
    differences[: CONFIGURATIONS // 2] = 0.0
    truth = dict(zip(identities, differences.tolist(), strict=True))
    spread_of = dict(zip(identities, spreads, strict=True))
    rows = []
    for execution, speed in zip(executions, drift(generator, len(executions)), strict=True):
        identity = execution.configuration.identity
        logarithm = truth[identity] + speed + generator.normal(0.0, spread_of[identity])
        rows.append(run_row(execution.configuration, execution.turn.round or 0, RATE * np.exp(logarithm)))
    return SimulatedStudy(plan, frame_of_rows(TableName.RUNS, rows), truth)


def run_row(measured: Configuration, round_number: int, rate: float) -> dict[str, object]:
    """Return the columns of one completed run that the table of configurations reads."""
    step_seconds = GLOBAL_BATCH / rate
    return {
        **measured.displayed_values(),
        "identity": measured.identity,
        "repetition": round_number,
        "ranks_expected": 1,
        "ranks_seen": 1,
        "order": "rounds",
        "round": round_number,
        "world_size": 1,
        "global_batch": GLOBAL_BATCH,
        "outcome": "completed",
        "throughput": rate,
        "step_seconds": step_seconds,
        "computation_seconds": step_seconds,
        "input_seconds": 0.0,
        "exposed_seconds": 0.0,
    }


def tallied(study: SimulatedStudy, counts: Counter[str]) -> None:
    """Count what the table of one study says, and how often it is wrong."""
    table, wrong_words = study.configurations(), 0
    for identity, truth in list(study.truth.items())[1:]:
        row = table.loc[identity]
        counts["ratios"] += 1
        counts["covered"] += row.relative_throughput_low <= np.exp(truth) <= row.relative_throughput_high
        counts["too narrow equalities"] += abs(truth) > np.log1p(row.relative_throughput_equal_within)
        claimed = {"faster": 1, "slower": -1}.get(row.verdict, 0)
        counts["same"] += truth == 0
        counts["false words"] += claimed != 0 and np.sign(truth) != claimed
        counts["found differences"] += claimed != 0 and np.sign(truth) == claimed
        wrong_words += claimed != 0 and np.sign(truth) != claimed
    counts["studies"] += 1
    counts["studies with a false word"] += wrong_words > 0


def row_of(name: str, drift: Drift, rounds: int, studies: int) -> tuple[str, bool]:
    """Return the line of the table for one drift and number of rounds, and whether it is within its limits."""
    counts: Counter[str] = Counter()
    stream = list(DRIFTS).index(name)
    for number in range(studies):
        tallied(simulated(drift, rounds, (stream, number)), counts)
    check_evidence(simulated(drift, rounds, (stream, studies)))
    coverage = counts["covered"] / counts["ratios"]
    false_words = counts["false words"] / counts["ratios"]
    false_studies = counts["studies with a false word"] / counts["studies"]
    equalities = counts["too narrow equalities"] / counts["ratios"]
    share_found = counts["found differences"] / (counts["ratios"] - counts["same"])
    cells = f"{coverage:.1%} | {false_words:.2%} | {false_studies:.1%} | {equalities:.1%} | {share_found:.0%}"
    is_good = COVERAGE_LIMITS[0] <= coverage <= COVERAGE_LIMITS[1] and false_studies <= false_limit(studies)
    return f"| {name} | {rounds} | {cells.replace('%', ' %')} |", is_good


def false_limit(studies: int) -> float:
    """Return which share of so many simulated studies may have a false verdict, where 5 % of all have one."""
    return FALSE_LIMIT + ERRORS * float(np.sqrt(FALSE_LIMIT * (1 - FALSE_LIMIT) / studies))


def check_evidence(study: SimulatedStudy) -> None:
    """Write the runs of a study as evidence and collect it; raise AssertionError if its table is a different one."""
    expected = study.configurations()
    with tempfile.TemporaryDirectory() as folder:
        paths = StudyPaths(Path(folder))
        study.plan.write(paths.plan_file)
        for entry in study.plan.entries:
            for run in study.runs[study.runs["identity"] == entry.configuration.identity].itertuples():
                recipe = Recipe(computation_seconds=float(run.step_seconds), noise=0.0)
                write_run(paths, entry.configuration, int(run.repetition), recipe)
        collected = collect(paths).configurations.set_index("identity")
    columns = ["throughput", "relative_throughput", "relative_throughput_low", "relative_throughput_equal_within"]
    np.testing.assert_allclose(collected[columns].astype(float), expected[columns].astype(float), rtol=1e-9)
    assert collected["verdict"].fillna("").tolist() == expected["verdict"].fillna("").tolist()


def published_groups() -> Iterator[Floats]:
    """Yield every published list of at least five runs of one configuration."""
    cells = load()
    runs = cells[(cells["estimator"] == "run") & (cells["metric"] == "throughput") & cells["runs_of"].notna()]
    for _, rates in runs.groupby("runs_of")["value"]:
        if len(rates) >= 5 and (rates > 0).all():
            yield rates.to_numpy(float)


def published_rows() -> Iterator[str]:
    """Yield the lines on subsets of three published runs."""
    generator = np.random.default_rng(1)
    groups = list(published_groups())
    large_groups = [rates for rates in groups if len(rates) >= 6]
    levels = np.mean([level_coverage(rates) for rates in groups])
    ratios = np.mean([ratio_coverage(rates, generator) for rates in large_groups])
    yield f"| level of 3 of the runs | {len(groups)} | {levels:.1%} |".replace("%", " %")
    yield f"| ratio of 3 of the runs to 3 others, Welch | {len(large_groups)} | {ratios:.1%} |".replace("%", " %")


def level_coverage(rates: Floats) -> float:
    """Return how often the interval of three runs holds the mean of all runs of a list, of all subsets.

    The three are among all, and so nearer to their mean than to that of further runs: the standard error is that of a
    sample without replacement, √(1 − 3/n) times that of a sample of many.
    """
    logarithms, share = np.log(rates), 1 - 3 / len(rates)
    covered = []
    for chosen in combinations(logarithms, 3):
        estimate = Estimate.of(chosen)
        interval = replace(estimate, error=(estimate.error or 0.0) * np.sqrt(share)).interval()
        covered.append(interval is not None and interval.low <= logarithms.mean() <= interval.high)
    return float(np.mean(covered))


def ratio_coverage(rates: Floats, generator: np.random.Generator) -> float:
    """Return how often the interval of the ratio of three runs to three others of the same list holds 1."""
    covered = []
    for _ in range(SUBSETS):
        drawn = generator.permutation(rates)
        interval = log_ratio(Sample(drawn[:3]), Sample(drawn[3:6])).interval()
        covered.append(interval is not None and interval.low <= 0 <= interval.high)
    return float(np.mean(covered))


def main() -> int:
    """Print both tables; return 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=300, help="simulated studies of each row")
    studies = parser.parse_args().studies
    is_good = True
    for name, drift in DRIFTS.items():
        for rounds in (3, 5, 10):
            line, is_within = row_of(name, drift, rounds, studies)
            print(line, "" if is_within else "<- beyond its limits", flush=True)
            is_good = is_good and is_within
    print(*published_rows(), sep="\n")
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
