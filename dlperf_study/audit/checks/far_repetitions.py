"""Repetitions that are far from the other runs of their configuration."""

from collections.abc import Iterator

import numpy as np

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import values_of
from dlperf_study.audit.results import Results
from dlperf_study.dataset.study_diagnostics import FAR_DEVIATIONS, FAR_SHARE, far_from_other_runs
from dlperf_study.diagnostic import Severity

_LIMIT = f"That is more than {FAR_SHARE:.0%} and {FAR_DEVIATIONS:g} of their deviations"
_EXPLANATIONS = (
    "the machine may have been busy, or throttled, in that run",
    "runs may differ that much in this configuration",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every list of at least two runs."""
    for runs in results.run_lists():
        far_runs, sentences = [], []
        for position, median in far_from_other_runs(np.array(values_of(runs))):
            if median > 0:
                run = runs[position]
                difference = f"{run.value / median - 1:+.1%}"
                far_runs.append(run)
                sentences.append(f"{run.text}, but the median of the other runs is {median:.5g} ({difference})")
        if far_runs:
            computation = f"{'; '.join(sentences)}. {_LIMIT}"
            cells = tuple(dict.fromkeys([*far_runs, *runs]))
            yield AuditDiagnostic(Severity.WARNING, cells, computation, _EXPLANATIONS)
        else:
            yield None


CHECK = Check("Do the runs of a configuration agree?", "lists of runs", examine)
