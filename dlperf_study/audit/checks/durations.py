"""Times of a step that are so long that they may be in other units."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

STEP = "step_seconds"
#: The longest step of the published figures of this package takes 22 s.
LONGEST_SECONDS = 100
_WHY = ("a step that gathers the gradients of many batches, or one of a large network on a CPU, may take minutes",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every time of a step."""
    yield from map(_examined, results.of(STEP))


def _examined(step: ResultCell) -> AuditDiagnostic | None:
    if step.value <= LONGEST_SECONDS:
        return None
    said = f"{STEP} is {step.text}, which is {step.value / 60:.3g} minutes. It looks like milliseconds"
    return AuditDiagnostic(Severity.WARNING, (step,), said, _WHY)


CHECK = Check("Can a step take that long?", "times of a step", examine)
