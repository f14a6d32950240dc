"""The share of communication, beside the times it comes from and beside the speedup it allows."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ROUNDINGS, SPEEDUP, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.published.source_lines import terms_of

SHARE, RATIO = "communication_share", "computation_to_communication"
TASK, EXCHANGE = "task_process_seconds", "report_gradient_seconds"
#: How much less than its communication allows a speedup may be before that is worth a note.
LOSS = 0.05
_ELSEWHERE = (
    "slower computation beside other workers, or waiting that the profile does not count as communication, "
    "may be the rest"
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share or ratio that stands beside what it follows from."""
    for share in results.of(SHARE, RATIO):
        for task in results.alike(share, TASK):
            for exchange in results.alike(share, EXCHANGE):
                if 0 < exchange.printed.exact < task.printed.exact:
                    yield _from_times(share, task, exchange)
    for share, speedup in results.pairs(SHARE, SPEEDUP):
        if share.world_size and share.world_size > 1 and share.value <= 1:
            yield _beside_speedup(share, speedup)


def _from_times(share: ResultCell, task: ResultCell, exchange: ResultCell) -> AuditDiagnostic | None:
    whole, part = task.printed.exact, exchange.printed.exact
    terms = terms_of(share.text)
    if terms:
        exact = terms[0] * part / (whole - part)
        fits = terms[1] in [rounded(exact) for rounded in ROUNDINGS.values()]
        said = f"({task.text} − {exchange.text}) : {exchange.text} = {terms[0]} : {float(exact):.3g}"
    else:
        exact = part / whole if share.metric == SHARE else (whole - part) / part
        fits = bool(share.printed.roundings_from(exact))
        said = f"{exchange.text} of {task.text} are {float(exact):.4g}"
    if fits:
        return None
    why = ("share and times may be of different runs",)
    return AuditDiagnostic(Severity.ERROR, (share, task, exchange), f"{said}, printed {share.text}", why)


def _beside_speedup(share: ResultCell, speedup: ResultCell) -> AuditDiagnostic | None:
    devices = share.world_size or 1
    low, high = (devices * (1 - bound) for bound in reversed(share.printed.bounds(truncated=True)))
    said = (
        f"with {share.text} of the time in communication, {devices} devices can be at most "
        f"{float(devices * (1 - share.printed.exact)):.3g} times as fast as one; printed {speedup.text}"
    )
    if speedup.printed.bounds()[0] > high:
        why = ("communication may overlap computation, or computation be faster on more devices",)
        return AuditDiagnostic(Severity.WARNING, (share, speedup), said, why)
    if speedup.printed.bounds()[1] < low * Fraction(1 - LOSS):
        lost = 1 - speedup.value / float(devices * (1 - share.printed.exact))
        return AuditDiagnostic(Severity.NOTE, (share, speedup), f"{said}, so {lost:.0%} more is lost", (_ELSEWHERE,))
    return None


CHECK = Check("Does the share of communication fit the times and the speedup?", "shares", examine)
