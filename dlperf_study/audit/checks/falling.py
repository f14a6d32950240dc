"""Steps of a curve that fall as devices are added."""

from collections.abc import Iterator

from dlperf_study.analysis.scaling import FALLING
from dlperf_study.audit.audit_check import AuditDiagnostic, Check, chance_phrase, step_phrase
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

#: No spread of runs that is worth printing makes one rate half of another.
LARGEST_BY_CHANCE = 0.5
#: The largest fall that one digit after the point does not round to all.
HIGHEST_PRINTED = 0.999


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step to more devices."""
    for fewer, more in results.steps():
        if more.cell.printed.bounds()[1] >= fewer.cell.printed.bounds()[0]:
            yield None
            continue
        is_certain = (fewer.cell.key, more.cell.key) in results.unexplained
        fall = 1 - more.cell.value / fewer.cell.value
        severity = Severity.WARNING if is_certain or fall > LARGEST_BY_CHANCE else Severity.NOTE
        fall_text = f"{fall:.1%}" if fall < HIGHEST_PRINTED else f"more than {HIGHEST_PRINTED:.1%}"
        computation = f"{step_phrase(fewer, more)}, a fall of {fall_text}"
        if is_certain or fall <= LARGEST_BY_CHANCE:
            computation += f"; {chance_phrase(is_certain, fewer, more)}"
        computation += "" if severity is Severity.WARNING else ", but not that more devices gained nothing"
        yield AuditDiagnostic(severity, (fewer.cell, more.cell), computation, FALLING)


CHECK = Check("Does a rate fall as devices are added?", "steps to more devices", examine)
