"""Rates, ratios and times, of which none can be negative, and none is 0 where something was trained."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import EFFICIENCY, RELATIVE, SPEEDUP, THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

METRICS = (THROUGHPUT, SPEEDUP, EFFICIENCY, RELATIVE, "step_seconds", "task_process_seconds")


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every such number, of single runs too."""
    yield from (_examined(cell) for cell in results.cells if cell.metric in METRICS)


def _examined(cell: ResultCell) -> AuditDiagnostic | None:
    if cell.value > 0:
        return None
    said = f"{cell.metric} is {cell.text}, and must be above 0"
    return AuditDiagnostic(Severity.ERROR, (cell,), said, ("it may have been rounded away, or stand for no number",))


CHECK = Check("Is everything above 0 that has to be?", "rates, ratios and times", examine)
