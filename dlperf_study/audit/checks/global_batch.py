"""The samples of a step: batch per device × devices."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, product
from dlperf_study.audit.results import Results

_WHY = (
    "a step may gather the gradients of several batches",
    "several devices may hold one copy of the model, and share its batch",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every global batch of a table that stands beside both of its factors."""
    return product(results, "global_batch", _WHY)


CHECK = Check("Is a global batch that of all devices?", "global batches beside their parts", examine)
