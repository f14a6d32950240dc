"""Points that fall as devices are added."""

from collections.abc import Iterator
from itertools import starmap

from dlperf_study.analysis.scaling import FALLING, falls
from dlperf_study.audit.audit_check import AuditDiagnostic, Check, bounds_of, step
from dlperf_study.audit.results import Rate, Results
from dlperf_study.diagnostic import Severity


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step to more devices."""
    return starmap(_examined, results.steps())


def _examined(fewer: Rate, more: Rate) -> AuditDiagnostic | None:
    if more.cell.printed.bounds()[1] >= fewer.cell.printed.bounds()[0]:
        return None
    certain = falls(fewer.point, more.point)
    fall = 1 - more.cell.value / fewer.cell.value
    verdict = "do not explain it" if certain else "may explain the fall, not that nothing was gained"
    said = f"{step(fewer, more)}, a fall of {fall:.1%}; {bounds_of(fewer, more)} {verdict}"
    return AuditDiagnostic(Severity.WARNING if certain else Severity.NOTE, (fewer.cell, more.cell), said, FALLING)


CHECK = Check("Does a rate fall as devices are added?", "steps to more devices", examine)
