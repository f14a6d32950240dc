"""Whether a study that is being measured needs a further round, and why."""

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.configuration_table import rate_column
from dlperf_study.dataset.run_table import run_row
from dlperf_study.dataset.study_diagnostics import leave_out_of_rounds
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.dataset.target_precision import needs_further_round, rounds_of_all
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.comparison import Throughputs, assign_rounds, collect_samples
from dlperf_study.metrics.outcome import had_background_load, select_completed
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.records.run import DuplicateRuns, read_run
from dlperf_study.study.job import ROUNDS
from dlperf_study.study.plan import Plan

DISTURBED, TARGET = "background load disturbed runs", "the target precision is not reached"


def reason_for_further_round(plan: Plan) -> str:
    """Return why another round is needed; empty if none is.

    Every throughput and ratio needs ``repeats`` rounds without background load, and then those of the target precision.
    """
    if plan.order != ROUNDS or plan.rounds.planned < MINIMUM_RUNS:
        return ""
    everything, undisturbed = _samples(plan)
    rounds, without_load = rounds_of_all(plan, everything), rounds_of_all(plan, undisturbed)
    if undisturbed.keys() < everything.keys():
        without_load = 0
    if without_load < min(plan.rounds.planned, rounds):
        return DISTURBED
    if needs_further_round(plan, undisturbed):
        return TARGET
    return ""


def _samples(plan: Plan) -> tuple[Throughputs, Throughputs]:
    """Return the throughputs of completed runs and of undisturbed runs."""
    rows = []
    duplicates = DuplicateRuns()
    for entry in plan.runnable:
        for paths in StudyPaths.of(plan.study).configuration(entry.configuration.identity).runs():
            try:
                rows.append(run_row(duplicates.checked(read_run(paths))))
            except EvidenceError:
                continue  # ``collect`` says so in the report
    runs, _ = leave_out_of_rounds(frame_of_rows(TableName.RUNS, rows))
    completed = select_completed(runs)
    rate = rate_column(completed, plan)
    samples = []
    for kept in (completed, completed[~had_background_load(completed)]):
        samples.append(collect_samples(kept[rate], kept["identity"], assign_rounds(kept, plan)))
    return samples[0], samples[1]
