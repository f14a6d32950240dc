"""Numbers beside the interval that is stated for them."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

_WHY = ("number and interval may be of different runs, or of different estimators",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number with both ends of an interval."""
    for cell in results.cells:
        if cell.get("low") is not None and cell.get("high") is not None:
            yield _examined(cell, cell.get("low"), cell.get("high"))


def _examined(cell: ResultCell, low: float, high: float) -> AuditDiagnostic | None:
    ends = f"[{low:.7g}, {high:.7g}]"
    if low > high:
        return AuditDiagnostic(
            Severity.ERROR, (cell,), f"the interval of {cell.text} is {ends}: it ends before it begins"
        )
    if cell.printed.meets(Fraction(low), Fraction(high)):
        return None
    return AuditDiagnostic(Severity.ERROR, (cell,), f"{cell.text} is outside its own interval {ends}", _WHY)


CHECK = Check("Does every number lie in its interval?", "numbers with an interval", examine)
