"""Step times that are so long that their unit may be wrong."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

STEP = "step_seconds"
#: The longest step of the published figures of this package takes 22 s.
LONGEST_SECONDS = 100
_EXPLANATIONS = (
    "a step that gathers the gradients of many batches, or one of a large network on a CPU, may take minutes",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step time."""
    for step in results.of(STEP):
        if step.value <= LONGEST_SECONDS:
            yield None
        else:
            computation = f"{STEP} is {step.text}, which is {step.value / 60:.3g} minutes. It looks like milliseconds"
            yield AuditDiagnostic(Severity.WARNING, (step,), computation, _EXPLANATIONS)


CHECK = Check("Can a step take that long?", "times of a step", examine)
