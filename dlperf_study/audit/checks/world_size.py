"""The number of devices: nodes × devices of a node."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, product_diagnostics
from dlperf_study.audit.results import Results

_EXPLANATIONS = ("not every node may have as many devices, or not all of them be used",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number of devices of a table that prints both of its factors too."""
    return product_diagnostics(results, "world_size", _EXPLANATIONS)


CHECK = Check(
    "Are there as many devices as the nodes hold?", "world sizes printed with nodes and devices per node", examine
)
