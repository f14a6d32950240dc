"""How often a comparison of measurement sessions says that something changed if nothing did, by simulation.

All configurations are equally fast in all sessions, but for what differs by chance from run to run and from session to
session. The last session is compared with those before it, by the function of the page *History* and of the command
``compare``.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.measurement_comparison import HIGHER, LOWER, MeasurementComparison, compare_measurements
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.comparison import FASTER, SLOWER, significances
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.order import planned_executions
from tests.simulations.coverage import RUN_SPREAD, THROUGHPUT, plan_of

CONFIGURATIONS, ROUNDS = 6, 6
#: The spread between sessions, of each configuration, and how many sessions there are before the last.
SESSION_SPREADS, EARLIER_SESSIONS = (0.0, 0.03, 0.1), (4, 5, 8)


def run_row(measured: Configuration, round_number: int, throughput: float) -> dict[str, object]:
    """Return the columns of one completed run that the table of configurations reads."""
    step_seconds = measured.global_batch / throughput
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
        "throughput": throughput,
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
            rows.append(
                run_row(execution.configuration, execution.turn.round or 0, THROUGHPUT * float(np.exp(logarithm)))
            )
        runs = frame_of_rows(TableName.RUNS, rows)
        configurations, _ = configurations_table(plan, runs, {})
        dataset = Dataset(plan, Path(f"sessions/{session}/dataset"), runs, configurations, diagnostics)
        sessions.append(Measurement(f"sessions@{session + 1}", dataset))
    return sessions


def rows_of(studies: int, spreads: tuple[float, ...] = SESSION_SPREADS) -> Iterator[tuple[str, float]]:
    """Yield the lines of the table, each with the share of comparisons that say something false.

    Besides, what the intervals within two sessions would have said, if outcomes were made of them.
    """
    for spread in spreads:
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
