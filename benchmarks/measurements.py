"""How often a comparison of measurement sessions says that something changed if nothing did, by simulation.

Launch from the root of the project: ``python -m benchmarks.measurements [--studies 400]``. It prints the table that
docs/statistics.md summarises, and ends with 1 if a row exceeds its limit.

All configurations are equally fast in all sessions, but for what differs by chance from run to run and from session to
session. The last session is compared with those before it, by the function of the page *History* and of the command
``compare``.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.coverage import RATE, RUN_SPREAD, false_limit, plan_of
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.measurement_comparison import HIGHER, LOWER, MeasurementComparison, compare_measurements
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.comparison import FASTER, SLOWER, significances
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.order import planned_executions

CONFIGURATIONS, ROUNDS = 6, 6
#: The spread between sessions, of each configuration, and how many sessions there are before the last.
SESSION_SPREADS, EARLIER_SESSIONS = (0.0, 0.03, 0.1), (4, 5, 8)


def run_row(measured: Configuration, round_number: int, rate: float) -> dict[str, object]:
    """Return the columns of one completed run that the table of configurations reads."""
    step_seconds = measured.global_batch / rate
    return {
        **measured.displayed_values(),
        "configuration_id": measured.configuration_id,
        "repetition": round_number,
        "ranks_expected": 1,
        "ranks_seen": 1,
        "order": "interleaved",
        "round": round_number,
        "world_size": 1,
        "global_batch": measured.global_batch,
        "status": "completed",
        "throughput": rate,
        "step_seconds": step_seconds,
        "compute_seconds": step_seconds,
        "input_seconds": 0.0,
        "exposed_communication_seconds": 0.0,
    }


def sessions_of(number: int, count: int, spread: float) -> list[Measurement]:
    """Return so many sessions of configurations that are equally fast, but for what differs between sessions."""
    plan = plan_of(CONFIGURATIONS, ROUNDS, number)
    generator = np.random.default_rng([number, round(1e6 * spread)])
    executions = planned_executions(plan)
    diagnostics = frame_of_rows(TableName.DIAGNOSTICS, [])
    sessions = []
    for session in range(count):
        of_session = dict(zip(plan.by_id, generator.normal(0.0, spread, CONFIGURATIONS), strict=True))
        rows = []
        for execution in executions:
            logarithm = of_session[execution.configuration.configuration_id] + generator.normal(0.0, RUN_SPREAD)
            rows.append(run_row(execution.configuration, execution.turn.round or 0, RATE * float(np.exp(logarithm))))
        runs = frame_of_rows(TableName.RUNS, rows)
        configurations, _ = configurations_table(plan, runs, {})
        dataset = Dataset(plan, Path(f"sessions/{session}/dataset"), runs, configurations, diagnostics)
        sessions.append(Measurement(f"sessions@{session + 1}", dataset))
    return sessions


def rows_of(studies: int) -> Iterator[tuple[str, float]]:
    """Yield the lines of the table, each with the share of comparisons that say something false.

    Besides, what the intervals within two sessions would have said, if outcomes were made of them.
    """
    for spread in SESSION_SPREADS:
        of_studies = [sessions_of(number, max(EARLIER_SESSIONS) + 1, spread) for number in range(studies)]
        for count in EARLIER_SESSIONS:
            comparisons = [compare_measurements(each[count - 1], each[count], each[:count]) for each in of_studies]
            share = float(np.mean([_has_word(comparison) for comparison in comparisons]))
            within = float(np.mean([_would_have_word(comparison) for comparison in comparisons]))
            yield f"| {100 * spread:g} % | {count} | {100 * share:.1f} % | {100 * within:.1f} % |", share


def _has_word(comparison: MeasurementComparison) -> bool:
    changes = (*comparison.throughputs, *comparison.speedups)
    return any(change.significance.word in (FASTER, SLOWER, HIGHER, LOWER) for change in changes)


def _would_have_word(comparison: MeasurementComparison) -> bool:
    ratios = {change.configuration_id: change.dates.log_ratio for change in comparison.throughputs}
    return any(significance.word in (FASTER, SLOWER) for significance in significances(ratios).values())


def main() -> int:
    """Print the table; return 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400, help="simulated studies of each row")
    studies = parser.parse_args().studies
    limit, is_good = false_limit(studies), True
    for line, share in rows_of(studies):
        print(line, "" if share <= limit else "<- beyond its limit", flush=True)
        is_good = is_good and share <= limit
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
