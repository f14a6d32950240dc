"""Repetitions that are far from the other runs of their configuration."""

from collections.abc import Iterator

import numpy as np

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.dataset.study_diagnostics import FAR_DEVIATIONS, FAR_SHARE, far_from_other_runs
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = (
    "the machine may have been busy, or throttled, in that run",
    "runs may differ that much in this configuration",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every list of at least two runs."""
    for runs in results.run_lists():
        yield _find_far_runs(runs)


def _find_far_runs(runs: list[ResultCell]) -> AuditDiagnostic | None:
    rates = np.array([run.value for run in runs])
    cells: list[ResultCell] = []
    sentences: list[str] = []
    for position, median in far_from_other_runs(rates):
        if median > 0:
            run = runs[position]
            cells.append(run)
            difference = f"{run.value / median - 1:+.1%}"
            sentences.append(f"{run.text}, but the median of the other runs is {median:.5g} ({difference})")
    if not cells:
        return None
    limit = f"That is more than {FAR_SHARE:.0%} and {FAR_DEVIATIONS:g} of their deviations"
    all_cells = tuple(dict.fromkeys([*cells, *runs]))
    return AuditDiagnostic(Severity.WARNING, all_cells, f"{'; '.join(sentences)}. {limit}", _EXPLANATIONS)


CHECK = Check("Do the runs of a configuration agree?", "lists of runs", examine)
