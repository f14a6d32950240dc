"""The samples of a step: batch per device × devices."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, product_diagnostics
from dlperf_study.audit.results import Results

_EXPLANATIONS = (
    "a step may gather the gradients of several batches",
    "several devices may hold one copy of the model, and share its batch",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every global batch of a table that prints both of its factors too."""
    return product_diagnostics(results, "global_batch", _EXPLANATIONS)


CHECK = Check(
    "Is a global batch that of all devices?", "global batches printed with devices and batch per device", examine
)
