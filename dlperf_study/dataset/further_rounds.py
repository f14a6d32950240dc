"""Whether a study that is being measured needs a further round, and why."""

from contextlib import suppress

import pandas as pd

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.configuration_table import throughput_column
from dlperf_study.dataset.run_table import run_row
from dlperf_study.dataset.study_diagnostics import leave_out_of_rounds
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.dataset.target_ci import needs_further_round, rounds_of_all
from dlperf_study.metrics import comparison, run_status, statistics
from dlperf_study.metrics.columns import TableName
from dlperf_study.records.run import DuplicateRuns, read_run, unexpected_as_record_error
from dlperf_study.study.job import INTERLEAVED
from dlperf_study.study.plan import Plan

DISTURBED, TARGET = "background load disturbed runs", "the target CI is not reached"


def reason_for_further_round(plan: Plan) -> str:
    """Return why another round is needed; empty if none is.

    Every throughput and ratio needs ``repetitions`` rounds without background load, and then those of the target
    precision.
    """
    if plan.order != INTERLEAVED or plan.rounds.planned < statistics.MINIMUM_RUNS:
        return ""
    runs = _completed_runs(plan)
    throughput = throughput_column(runs, plan)
    everything = comparison.collect_samples(
        runs[throughput], runs["configuration_id"], comparison.assign_rounds(runs, plan)
    )
    runs = runs[~run_status.had_background_load(runs)]
    undisturbed = comparison.collect_samples(
        runs[throughput], runs["configuration_id"], comparison.assign_rounds(runs, plan)
    )
    rounds, without_load = rounds_of_all(plan, everything), rounds_of_all(plan, undisturbed)
    if undisturbed.keys() < everything.keys():
        without_load = 0
    if without_load < min(plan.rounds.planned, rounds):
        return DISTURBED
    if needs_further_round(plan, undisturbed):
        return TARGET
    return ""


def _completed_runs(plan: Plan) -> pd.DataFrame:
    rows = []
    duplicates = DuplicateRuns()
    for entry in plan.runnable:
        for paths in StudyPaths.of(plan.study).configuration(entry.configuration.configuration_id).runs():
            # ``collect`` says in the report which runs are unreadable.
            with suppress(RecordError), unexpected_as_record_error(paths):
                rows.append(run_row(duplicates.checked(read_run(paths))))
    runs, _ = leave_out_of_rounds(frame_of_rows(TableName.RUNS, rows))
    return run_status.select_completed(runs)
