"""Shares that are more than 1: they may be in per cent."""

from collections.abc import Iterator

from dlperf_study.analysis.utilisation import WINOGRAD, severity_above_peak
from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

MFU, COMMUNICATION = "mfu", "communication_share"
_PER_CENT = "it may be in per cent, without its sign"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share; `utilisation` examines those of a peak that have FLOPs per sample."""
    for share in results.of(MFU, COMMUNICATION):
        if share.get("flops_per_sample"):
            continue
        computation = f"{share.metric} is {share.text}, and a share is at most 1"
        if share.printed.bounds()[0] <= 1:
            yield None
        elif share.metric == MFU and severity_above_peak(share.value) is Severity.WARNING:
            yield AuditDiagnostic(Severity.WARNING, (share,), computation, (WINOGRAD, _PER_CENT))
        else:
            yield AuditDiagnostic(Severity.ERROR, (share,), computation, (_PER_CENT,))


CHECK = Check("Is every share at most 1?", "shares of a peak and of the time", examine)
