"""Rates beside times: samples / seconds of a task or a step, over all devices, is the rate."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, bounds_of
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell, whole_over
from dlperf_study.audit.results import Rate, Results
from dlperf_study.diagnostic import Severity

TASK, STEP = "task_process_seconds", "step_seconds"
_WHY = (
    "rate and time may be of different runs",
    "the rate may leave out what the time includes, as reading data or the first step",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every time of a task or a step, and every rate of the same configuration."""
    for seconds in results.of(TASK, STEP):
        samples = _samples(seconds)
        known = samples > 0 and seconds.printed.positive
        for rate in results.alike(seconds, THROUGHPUT) if known else ():
            yield _examined(results, seconds, rate, samples)


def _samples(seconds: ResultCell) -> int:
    """Return the samples that all devices together work through in that time; 0 if not known."""
    if seconds.metric == STEP:
        return int(seconds.get("global_batch") or 0)
    return int(seconds.get("samples_per_task") or 0) * (seconds.world_size or 0)


def _examined(results: Results, seconds: ResultCell, rate: ResultCell, samples: int) -> AuditDiagnostic | None:
    low, high = whole_over(samples, seconds.printed)
    exact = samples / seconds.value
    if rate.printed.meets(low, high) or (rate.printed.computed and _between(results.rate(rate), exact)):
        return None
    excess = rate.value / exact - 1
    off = f"{abs(excess):.1%} {'more' if excess > 0 else 'less'}"
    said = f"{samples} samples in {seconds.text} s are {exact:.4g} samples/s, printed {rate.text}, {off}"
    said += _other_batch(seconds, rate, samples)
    known = results.rate(rate)
    if _between(known, exact):
        return AuditDiagnostic(Severity.WARNING, (rate, seconds), f"{said}; {bounds_of(known)} may explain it", _WHY)
    return AuditDiagnostic(Severity.ERROR, (rate, seconds), said, _WHY)


def _other_batch(seconds: ResultCell, rate: ResultCell, samples: int) -> str:
    """Return the suspicion that the global batch is what is wrong: that of all devices fits rate and time."""
    batch = int((seconds.get("batch_per_device") or 0) * (seconds.world_size or 0))
    fits = seconds.metric == STEP and batch not in (0, samples)
    if not (fits and rate.printed.meets(*whole_over(batch, seconds.printed))):
        return ""
    return f". {seconds.get('batch_per_device'):g} × {seconds.world_size} = {batch} samples would fit"


def _between(rate: Rate, exact: float) -> bool:
    """Say whether a median's bounds hold a number: the median of rates need not be that of times, turned over."""
    return rate.point.low <= exact <= rate.point.high


CHECK = Check("Do rates and times agree?", "times beside a rate", examine)
