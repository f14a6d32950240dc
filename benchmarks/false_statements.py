"""How often studies in which nothing differs say that something does, by simulation.

Launch from the root of the project: ``python -m benchmarks.false_statements [--studies 150]``. It prints the tables of
docs/statistics.md, and ends with 1 if a row exceeds its limit.

All configurations are equally fast. Their runs go through the functions that make the verdicts and the diagnostics of
a study, in the order of a real plan; a study counts if it says anything of that kind. Of several dates the last one is
compared with those before it, by the function of the page *History* and of the command ``compare``.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.coverage import RATE, RUN_SPREAD, SPREAD_OF_SPREADS, false_limit, plan_of, run_row
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.measurement_comparison import HIGHER, LOWER, MeasurementComparison, compare_measurements
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.comparison import FASTER, SLOWER, verdicts
from dlperf_study.study.order import planned_executions
from dlperf_study.study.plan import Plan


@dataclass(frozen=True)
class Setting:
    """Equally fast configurations in groups with a baseline each, and a machine that becomes slower by a share."""

    configurations: int
    baselines: int = 1
    rounds: int = 3
    fall: float = 0.0

    def plan(self, order_seed: int) -> Plan:
        """Return the plan; the first configurations are the baselines."""
        plan = plan_of(self.rounds, order_seed)
        entries = plan.entries[: self.configurations]
        identities = [entry.configuration.identity for entry in entries]
        grouped = []
        for position, entry in enumerate(entries):
            baseline = identities[position % self.baselines]
            grouped.append(replace(entry, baseline_identity=baseline, reference_identity=None))
        return replace(plan, entries=tuple(grouped))

    def runs(self, plan: Plan, generator: np.random.Generator) -> pd.DataFrame:
        """Return the table of runs; each configuration has a spread of its own."""
        executions = planned_executions(plan)
        spreads = np.exp(generator.normal(np.log(RUN_SPREAD), SPREAD_OF_SPREADS, len(plan.entries)))
        spread_of = dict(zip(plan.by_identity, spreads, strict=True))
        rows = []
        for execution, speed in zip(executions, np.linspace(0.0, -self.fall, len(executions)), strict=True):
            deviation = spread_of[execution.configuration.identity]
            rate = RATE * float(np.exp(speed + generator.normal(0.0, deviation)))
            rows.append(run_row(execution.configuration, execution.turn.round or 0, rate))
        return frame_of_rows(TableName.RUNS, rows)


def has_false_verdict(setting: Setting, number: int) -> bool:
    """Return whether a study says faster or slower of any configuration."""
    plan = setting.plan(number)
    generator = np.random.default_rng([number, setting.configurations, setting.baselines, setting.rounds])
    table, _ = configurations_table(plan, setting.runs(plan, generator), {})
    return bool(table["baseline_verdict"].isin((FASTER, SLOWER)).any())


def verdict_rows(studies: int) -> Iterator[tuple[str, float]]:
    """Yield the lines on verdicts, each with the share of studies that have a false one."""
    settings = [Setting(12, baselines) for baselines in (1, 2, 3, 6)]
    settings += [Setting(6, 3), Setting(12, 6, rounds=6)]
    settings += [Setting(count, rounds=rounds, fall=0.3) for count in (2, 3) for rounds in (3, 4, 6)]
    for setting in settings:
        share = float(np.mean([has_false_verdict(setting, number) for number in range(studies)]))
        cells = (setting.configurations, setting.baselines, setting.rounds, f"{100 * setting.fall:g} %")
        yield f"| {' | '.join(map(str, cells))} | {100 * share:.1f} % |", share


#: The spread between dates, of each configuration, and how many dates there are before the last.
DATE_SPREADS, EARLIER_DATES = (0.0, 0.03, 0.1), (4, 5, 8)
OF_DATES = Setting(6)


def dated(number: int, dates: int, spread: float) -> list[Measurement]:
    """Return so many measurements of configurations that are equally fast, but for what differs from date to date."""
    plan, generator = OF_DATES.plan(number), np.random.default_rng([number, round(1e6 * spread)])
    runs = OF_DATES.runs(plan, generator)
    configurations, _ = configurations_table(plan, runs, {})
    diagnostics = frame_of_rows(TableName.DIAGNOSTICS, [])
    measurements = []
    for date in range(dates):
        of_date = dict(zip(plan.by_identity, generator.normal(0.0, spread, len(plan.entries)), strict=True))
        logarithms = runs["identity"].map(of_date) + generator.normal(0.0, RUN_SPREAD, len(runs))
        of_runs = runs.assign(throughput=RATE * np.exp(logarithms))
        dataset = Dataset(plan, Path(f"dates/{date}/dataset"), of_runs, configurations, diagnostics)
        measurements.append(Measurement(f"dates@{date + 1}", dataset))
    return measurements


def date_rows(studies: int) -> Iterator[tuple[str, float]]:
    """Yield the lines on dates: the share of comparisons with a false verdict.

    Besides, what the intervals within two dates would have said, if verdicts were made of them.
    """
    for spread in DATE_SPREADS:
        of_studies = [dated(number, max(EARLIER_DATES) + 1, spread) for number in range(studies)]
        for count in EARLIER_DATES:
            comparisons = [compare_measurements(dates[count - 1], dates[count], dates[:count]) for dates in of_studies]
            share = float(np.mean([_has_word(comparison) for comparison in comparisons]))
            within_dates = float(np.mean([_would_have_word(comparison) for comparison in comparisons]))
            yield f"| {100 * spread:g} % | {count} | {100 * share:.1f} % | {100 * within_dates:.1f} % |", share


def _has_word(comparison: MeasurementComparison) -> bool:
    changes = (*comparison.throughputs, *comparison.speedups)
    return any(change.verdict.word in (FASTER, SLOWER, HIGHER, LOWER) for change in changes)


def _would_have_word(comparison: MeasurementComparison) -> bool:
    ratios = {change.identity: change.dates.log_ratio for change in comparison.throughputs}
    return any(verdict.word in (FASTER, SLOWER) for verdict in verdicts(ratios).values())


def main() -> int:
    """Print the tables; return 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=150, help="simulated studies of each row")
    studies = parser.parse_args().studies
    limit, is_good = false_limit(studies), True
    for line, share in chain(verdict_rows(studies), date_rows(studies)):
        print(line, "" if share <= limit else "<- beyond its limit", flush=True)
        is_good = is_good and share <= limit
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
