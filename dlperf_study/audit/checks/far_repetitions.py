"""Repetitions that lie far from their siblings."""

from collections.abc import Iterator

import numpy as np

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.dataset.study_diagnostics import FAR_DEVIATIONS, FAR_SHARE, far_from_other_runs
from dlperf_study.diagnostic import Severity

_WHY = ("the machine may have been busy, or throttled, in that run", "runs may differ that much in this configuration")


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every list of at least two runs."""
    for runs in results.run_lists():
        rates = np.array([run.value for run in runs])
        far = [(runs[position], middle) for position, middle in far_from_other_runs(rates) if middle > 0]
        yield _found(runs, far) if far else None


def _found(runs: list[ResultCell], far: list[tuple[ResultCell, float]]) -> AuditDiagnostic:
    seen = "; ".join(
        f"{run.text}, but its siblings' median is {middle:.5g} ({run.value / middle - 1:+.1%})" for run, middle in far
    )
    said = f"{seen}. That is more than {FAR_SHARE:.0%} and {FAR_DEVIATIONS:g} of their deviations"
    cells = dict.fromkeys([*(run for run, _ in far), *runs])
    return AuditDiagnostic(Severity.WARNING, tuple(cells), said, _WHY)


CHECK = Check("Do the runs of a configuration agree?", "lists of runs", examine)
