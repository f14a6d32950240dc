"""Shares, of which none can be more than the whole: what is, is in per cent."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import FEWER, WINOGRAD
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

MFU, COMMUNICATION = "mfu", "communication_share"
_PER_CENT = "it may be in per cent, without its sign"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share; where FLOPs are stated, that of a peak is recomputed by another check."""
    yield from (_examined(share) for share in results.of(MFU, COMMUNICATION) if not share.get("flops_per_sample"))


def _examined(share: ResultCell) -> AuditDiagnostic | None:
    if share.printed.bounds()[0] <= 1:
        return None
    said = f"{share.metric} is {share.text}, and a share is at most 1"
    if share.metric == MFU and share.value <= FEWER:
        return AuditDiagnostic(Severity.WARNING, (share,), said, (WINOGRAD, _PER_CENT))
    return AuditDiagnostic(Severity.ERROR, (share,), said, (_PER_CENT,))


CHECK = Check("Is every share one of a whole?", "shares of a peak and of the time", examine)
