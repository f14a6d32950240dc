"""Steps of a curve that fall as devices are added."""

from collections.abc import Iterator

from dlperf_study.analysis.scaling import FALLING
from dlperf_study.audit.audit_check import AuditDiagnostic, Check, chance_phrase, step_phrase
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step to more devices."""
    for fewer, more in results.steps():
        if more.cell.printed.bounds()[1] >= fewer.cell.printed.bounds()[0]:
            yield None
            continue
        is_certain = (fewer.cell.key, more.cell.key) in results.unexplained
        severity = Severity.WARNING if is_certain else Severity.NOTE
        fall = 1 - more.cell.value / fewer.cell.value
        computation = f"{step_phrase(fewer, more)}, a fall of {fall:.1%}; "
        computation += chance_phrase(is_certain, fewer, more)
        computation += "" if is_certain else ", but not that nothing was gained"
        yield AuditDiagnostic(severity, (fewer.cell, more.cell), computation, FALLING)


CHECK = Check("Does a rate fall as devices are added?", "steps to more devices", examine)
