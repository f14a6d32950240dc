"""The share of communication, compared with the times it comes from and with the speedup it allows."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ROUNDINGS, SPEEDUP, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.published.source_lines import terms_of

SHARE, RATIO = "communication_share", "computation_to_communication"
TASK, EXCHANGE = "task_process_seconds", "report_gradient_seconds"
#: A speedup may be this much below what its communication allows without a note.
LOSS = 0.05
_OTHER_RUNS = ("share and times may be of different runs",)
_OVERLAP = ("communication may overlap computation, or computation be faster on more devices",)
_OTHER_LOSSES = (
    "slower computation next to other workers, or waiting that the profile does not count as communication, "
    "may be the rest",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share or ratio and the times it comes from, and every share and its speedup."""
    for share in results.of(SHARE, RATIO):
        for task in results.same_configuration(share, TASK):
            for exchange in results.same_configuration(share, EXCHANGE):
                if 0 < exchange.printed.exact < task.printed.exact:
                    yield _compare_with_times(share, task, exchange)
    for share, speedup in results.pairs(SHARE, SPEEDUP):
        if share.world_size and share.world_size > 1 and share.value <= 1:
            yield _compare_with_speedup(share, speedup, share.world_size)


def _compare_with_times(share: ResultCell, task: ResultCell, exchange: ResultCell) -> AuditDiagnostic | None:
    task_seconds, exchange_seconds = task.printed.exact, exchange.printed.exact
    computation_seconds = task_seconds - exchange_seconds
    terms = terms_of(share.text)
    if terms:
        expected = terms[0] * exchange_seconds / computation_seconds
        fits = terms[1] in [rounding(expected) for rounding in ROUNDINGS.values()]
        formula = f"({task.text} − {exchange.text}) : {exchange.text} = {terms[0]} : {float(expected):.3g}"
    else:
        is_share = share.metric == SHARE
        expected = exchange_seconds / task_seconds if is_share else computation_seconds / exchange_seconds
        fits = bool(share.printed.roundings_from(expected))
        formula = f"{exchange.text} of {task.text} are {float(expected):.4g}"
    if fits:
        return None
    cells = (share, task, exchange)
    return AuditDiagnostic(Severity.ERROR, cells, f"{formula}, printed {share.text}", _OTHER_RUNS)


def _compare_with_speedup(share: ResultCell, speedup: ResultCell, devices: int) -> AuditDiagnostic | None:
    smallest_share, largest_share = share.printed.bounds(truncated=True)
    low, high = devices * (1 - largest_share), devices * (1 - smallest_share)
    allowed = float(devices * (1 - share.printed.exact))
    computation = (
        f"with {share.text} of the time in communication, {devices} devices can be at most "
        f"{allowed:.3g} times as fast as one; printed {speedup.text}"
    )
    if speedup.printed.bounds()[0] > high:
        return AuditDiagnostic(Severity.WARNING, (share, speedup), computation, _OVERLAP)
    if speedup.printed.bounds()[1] < low * Fraction(1 - LOSS):
        if allowed:
            computation += f", so {1 - speedup.value / allowed:.0%} more is lost"
        return AuditDiagnostic(Severity.NOTE, (share, speedup), computation, _OTHER_LOSSES)
    return None


CHECK = Check("Does the share of communication fit the times and the speedup?", "shares", examine)
