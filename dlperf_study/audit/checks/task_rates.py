"""Rates and times: samples, or tokens, of all devices or of one / seconds of a task or a step is the rate."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from dlperf_study.audit.audit_check import FAR_APART, AuditDiagnostic, Check
from dlperf_study.audit.result_cell import (
    SAMPLES_OF_DEVICE,
    THROUGHPUT,
    TOKENS,
    TOKENS_OF_DEVICE,
    ResultCell,
    integer_quotient,
)
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

TASK, STEP = "task_process_seconds", "step_seconds"
_EXPLANATIONS = (
    "rate and time may be of different runs",
    "the rate may leave out what the time includes, as reading data or the first step",
)


_NOUNS = {
    THROUGHPUT: "samples",
    SAMPLES_OF_DEVICE: "samples of a device",
    TOKENS: "tokens",
    TOKENS_OF_DEVICE: "tokens of a device",
}


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every time of a task or a step, and every rate of the same configuration."""
    for seconds in results.of(TASK, STEP):
        if not seconds.printed.is_positive:
            continue
        for metric, amount in _amounts(seconds).items():
            for rate in results.same_configuration(seconds, metric):
                yield _compare(results, seconds, rate, amount)


def _amounts(seconds: ResultCell) -> Mapping[str, Fraction]:
    """Return what is processed in a time: samples and tokens, of all devices and of one, as far as they are known."""
    devices = seconds.world_size or 0
    if seconds.metric == TASK:
        samples = Fraction(int(seconds.get("samples_per_task") or 0) * devices)
        return {THROUGHPUT: samples} if samples > 0 else {}
    samples = Fraction(int(seconds.get("global_batch") or 0))
    if samples <= 0:
        return {}
    amounts = {THROUGHPUT: samples}
    if devices:
        amounts[SAMPLES_OF_DEVICE] = samples / devices
    if length := int(seconds.get("sequence_length") or 0):
        amounts[TOKENS] = samples * length
        if devices:
            amounts[TOKENS_OF_DEVICE] = samples * length / devices
    return amounts


def _compare(results: Results, seconds: ResultCell, rate: ResultCell, amount: Fraction) -> AuditDiagnostic | None:
    expected = float(amount) / seconds.value
    # The mean of rates need not be the reciprocal of the mean of times.
    is_between, reason = _may_be_of_other_runs(results, rate, expected)
    if rate.printed.overlaps(*integer_quotient(amount, seconds.printed)) or (rate.printed.computed and is_between):
        return None
    excess = rate.value / expected - 1
    difference = f"{abs(excess):.1%} {'more' if excess > 0 else 'less'}"
    noun, time = _NOUNS[rate.metric], seconds.text if seconds.text.endswith("s") else f"{seconds.text} s"
    computation = f"{float(amount):.12g} {noun} in {time} are {expected:.4g} {noun.partition(' ')[0]}/s, "
    computation += f"printed {rate.text}, {difference}"
    batch_per_device = seconds.get("batch_per_device") or 0
    global_batch = int(batch_per_device * (seconds.world_size or 0))
    # The printed global batch may be wrong, and batch per device × devices fit rate and time.
    is_other_batch = seconds.metric == STEP and global_batch not in (0, amount) and rate.metric == THROUGHPUT
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
