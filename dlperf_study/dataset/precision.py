"""The precision that a study asks for: which configurations have not reached it, and what the rest would cost."""

from collections.abc import Iterator

import pandas as pd

from dlperf_study.analysis.comparison import Throughputs
from dlperf_study.analysis.precision import Precision, too_wide, widest
from dlperf_study.columns import TableName
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.dataset.rounds import with_shared_rounds
from dlperf_study.dataset.run_table import run_row
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.diagnostic import Diagnostic
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.run import DuplicateRuns, read_run
from dlperf_study.paths import StudyPaths
from dlperf_study.plan.plan import Plan
from dlperf_study.study.job import Outcome
from dlperf_study.wording import duration


def configurations_too_wide(plan: Plan) -> set[str]:
    """Return the identities of the configurations that need further runs, by the evidence that there is now."""
    rows = []
    duplicates = DuplicateRuns()
    for entry in plan.runnable:
        for paths in StudyPaths.of(plan.study).configuration(entry.configuration.identity).runs():
            try:
                rows.append(run_row(duplicates.checked(read_run(paths))))
            except EvidenceError:
                continue  # ``collect`` says so in the report
    runs, _ = with_shared_rounds(frame_of_rows(TableName.RUNS, rows))
    return too_wide(plan, throughputs_of(runs, plan))


def precision_diagnostics(plan: Plan, runs: pd.DataFrame, throughputs: Throughputs) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each measured configuration whose widest interval is wider than the plan asks."""
    if plan.precision is None:
        return
    completed = runs[runs["outcome"] == Outcome.COMPLETED]
    positions = completed.groupby("identity").indices
    for entry in plan.runnable:
        identity = entry.configuration.identity
        reached = widest(entry, throughputs)
        if reached and reached.is_wider_than(plan.precision):
            of_configuration = completed.iloc[positions[identity]]
            seconds = (of_configuration["run_seconds"] + of_configuration["waited_seconds"].fillna(0.0)).mean()
            yield Diagnostic(
                reached.column, _message(reached, plan.precision, len(of_configuration), seconds), identity=identity
            )


def _message(reached: Precision, wanted: float, runs: int, run_seconds: float) -> str:
    """Return what was reached with so many runs, and what the rest would cost."""
    request = f"the study asks for ± {100 * wanted:g} %"
    if reached.half_width is None:
        takes = "three rounds with a run of both" if reached.denominator else "three runs"
        return f"no interval after {runs} runs, {request}: it takes {takes}"
    half_width = f"± {100 * reached.half_width:.2g} % after {runs} runs, {request}"
    needed = reached.runs_needed(wanted)
    if needed is None:
        return f"{half_width}, which this machine does not reach in any number of runs worth measuring"
    more = needed - reached.runs
    return f"{half_width}; that takes about {more} more, {duration(more * run_seconds)}"
