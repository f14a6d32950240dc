"""Numbers and the interval that the table gives for them."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = ("number and interval may be of different runs, or of different estimators",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number with both bounds of an interval."""
    for cell in results.cells:
        low, high = cell.get("low"), cell.get("high")
        if low is None or high is None:
            continue
        bounds = f"[{low:.7g}, {high:.7g}]"
        if low > high:
            computation = f"the interval of {cell.text} is {bounds}: its lower bound is above its upper bound"
            yield AuditDiagnostic(Severity.ERROR, (cell,), computation)
        elif cell.printed.overlaps(Fraction(low), Fraction(high)):
            yield None
        else:
            computation = f"{cell.text} is outside its own interval {bounds}"
            yield AuditDiagnostic(Severity.ERROR, (cell,), computation, _EXPLANATIONS)


CHECK = Check("Is every number in its interval?", "numbers with an interval", examine)
