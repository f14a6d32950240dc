"""Rates, ratios and times: none can be negative, and none is 0 where something was trained."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import EFFICIENCY, RATES, RELATIVE, SPEEDUP, STEPS
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

METRICS = (*RATES, STEPS, SPEEDUP, EFFICIENCY, RELATIVE, "step_seconds", "task_process_seconds")
_EXPLANATIONS = ("it may have been rounded away, or stand for no number",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number of these metrics, also of single runs."""
    for cell in results.cells:
        if cell.metric not in METRICS:
            continue
        if cell.value > 0:
            yield None
        else:
            computation = f"{cell.metric} is {cell.text}, and must be above 0"
            yield AuditDiagnostic(Severity.ERROR, (cell,), computation, _EXPLANATIONS)


CHECK = Check("Is everything above 0 that has to be?", "rates, ratios and times", examine)
