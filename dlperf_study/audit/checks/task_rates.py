"""Rates and times: samples of all devices / seconds of a task or a step is the rate."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import FAR_APART, AuditDiagnostic, Check
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell, integer_quotient
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

TASK, STEP = "task_process_seconds", "step_seconds"
_EXPLANATIONS = (
    "rate and time may be of different runs",
    "the rate may leave out what the time includes, as reading data or the first step",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every time of a task or a step, and every rate of the same configuration."""
    for seconds in results.of(TASK, STEP):
        if seconds.metric == STEP:
            samples = int(seconds.get("global_batch") or 0)
        else:
            samples = int(seconds.get("samples_per_task") or 0) * (seconds.world_size or 0)
        if samples > 0 and seconds.printed.is_positive:
            for rate in results.same_configuration(seconds, THROUGHPUT):
                yield _compare(results, seconds, rate, samples)


def _compare(results: Results, seconds: ResultCell, rate: ResultCell, samples: int) -> AuditDiagnostic | None:
    expected = samples / seconds.value
    # The mean of rates need not be the reciprocal of the mean of times.
    is_between, reason = _may_be_of_other_runs(results, rate, expected)
    if rate.printed.overlaps(*integer_quotient(samples, seconds.printed)) or (rate.printed.computed and is_between):
        return None
    excess = rate.value / expected - 1
    difference = f"{abs(excess):.1%} {'more' if excess > 0 else 'less'}"
    computation = f"{samples} samples in {seconds.text} s are {expected:.4g} samples/s, "
    computation += f"printed {rate.text}, {difference}"
    batch_per_device = seconds.get("batch_per_device") or 0
    global_batch = int(batch_per_device * (seconds.world_size or 0))
    # The printed global batch may be wrong, and batch per device × devices fit rate and time.
    is_other_batch = seconds.metric == STEP and global_batch not in (0, samples)
    if is_other_batch and rate.printed.overlaps(*integer_quotient(global_batch, seconds.printed)):
        computation += f". {batch_per_device:g} × {seconds.world_size} = {global_batch} samples would fit"
    if is_between:
        computation += f"; {reason} may explain it"
    severity = Severity.WARNING if is_between else Severity.ERROR
    return AuditDiagnostic(severity, (rate, seconds), computation, _EXPLANATIONS)


def _may_be_of_other_runs(results: Results, rate: ResultCell, expected: float) -> tuple[bool, str]:
    """Return whether runs of one configuration may be as far apart as a rate is from ``expected``, and which runs."""
    interval = results.rate(rate).logarithm.factor_interval() if rate.printed.is_positive else None
    if interval:
        return interval.low <= expected <= interval.high, "the spread of its runs"
    return abs(rate.value / expected - 1) <= FAR_APART, f"runs up to {FAR_APART:.0%} apart"


CHECK = Check("Do rates and times agree?", "times with a rate", examine)
