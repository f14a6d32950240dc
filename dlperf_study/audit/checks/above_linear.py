"""Steps of a curve that rise faster than the devices that were added."""

from collections.abc import Iterator
from itertools import starmap

from dlperf_study.analysis.scaling import ABOVE_LINEAR, IMPOSSIBLE_GAIN, above_linear, gain
from dlperf_study.audit.audit_check import AuditDiagnostic, Check, bounds_of, step
from dlperf_study.audit.results import Rate, Results
from dlperf_study.diagnostic import Severity

#: What is not worth a word: of 95 published lists of runs half have a coefficient of variation above 0.4 %.
NOISE = 0.01
_ANOTHER_QUESTION = ("the two rates may be of different conditions that the table does not tell",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step to more devices."""
    return starmap(_examined, results.steps())


def _examined(fewer: Rate, more: Rate) -> AuditDiagnostic | None:
    excess = gain(fewer.point, more.point) - 1
    least, largest = more.cell.printed.bounds()[0], fewer.cell.printed.bounds()[1]
    if excess < NOISE or least <= largest * more.point.devices / fewer.point.devices:
        return None
    if excess > IMPOSSIBLE_GAIN - 1:
        return AuditDiagnostic(Severity.ERROR, (fewer.cell, more.cell), _said(fewer, more, excess), _ANOTHER_QUESTION)
    certain = above_linear(fewer.point, more.point)
    verdict = "do not explain it" if certain else "may explain it"
    said = f"{_said(fewer, more, excess)}; {bounds_of(fewer, more)} {verdict}"
    return AuditDiagnostic(Severity.WARNING if certain else Severity.NOTE, (fewer.cell, more.cell), said, ABOVE_LINEAR)


def _said(fewer: Rate, more: Rate, excess: float) -> str:
    return f"{step(fewer, more)}, {excess:.1%} above linear"


CHECK = Check("Does a curve rise faster than its devices?", "steps to more devices", examine)
