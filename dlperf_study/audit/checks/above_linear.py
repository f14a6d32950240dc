"""Steps of a curve that rise faster than the number of devices."""

from collections.abc import Iterator

from dlperf_study.analysis.scaling import ABOVE_LINEAR, IMPOSSIBLE_GAIN
from dlperf_study.audit.audit_check import AuditDiagnostic, Check, chance_phrase, step_phrase
from dlperf_study.audit.rates import curve_step
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

#: A smaller excess is ignored unless runs show it: of 95 published lists of runs half vary by more than 0.4 %.
NOISE = 0.01
_DIFFERENT_CONDITIONS: tuple[str, ...] = ("the two rates may be of different conditions that the table does not tell",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step to more devices."""
    for fewer, more in results.steps():
        excess = curve_step(fewer, more).gain - 1
        lowest, highest = more.cell.printed.bounds()[0], fewer.cell.printed.bounds()[1]
        is_certain = (fewer.cell.key, more.cell.key) in results.unexplained
        is_small = excess < NOISE and not is_certain
        if is_small or lowest <= highest * more.point.devices / fewer.point.devices:
            yield None
            continue
        computation = f"{step_phrase(fewer, more)}, {excess:.1%} above linear"
        severity, explanations = Severity.ERROR, _DIFFERENT_CONDITIONS
        if excess <= IMPOSSIBLE_GAIN - 1:
            severity, explanations = Severity.WARNING if is_certain else Severity.NOTE, ABOVE_LINEAR
            computation += f"; {chance_phrase(is_certain, fewer, more)}"
        yield AuditDiagnostic(severity, (fewer.cell, more.cell), computation, explanations)


CHECK = Check("Does a curve rise faster than its devices?", "steps to more devices", examine)
