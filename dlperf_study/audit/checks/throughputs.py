"""Throughputs of a job and of a device, in samples, tokens and steps."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from dlperf_study.audit import quantities
from dlperf_study.audit.checks import FAR_APART, Agreeing, AuditDiagnostic, check, relative_deviation
from dlperf_study.audit.checks.transformers import copy_devices
from dlperf_study.audit.result_cell import ResultCell, integer_quotient, quotient
from dlperf_study.audit.results import Results
from dlperf_study.core.errors import Severity

_QUOTIENTS = (
    (quantities.TOKENS, quantities.THROUGHPUT, "tokens_per_sample"),
    (quantities.TOKENS_OF_DEVICE, quantities.SAMPLES_OF_DEVICE, "tokens_per_sample"),
    (quantities.TOKENS, quantities.STEPS, "tokens_per_step"),
    (quantities.THROUGHPUT, quantities.STEPS, "global_batch"),
)
_LENGTH = "sequence_length"
_ITEMS = {
    quantities.THROUGHPUT: "samples",
    quantities.SAMPLES_OF_DEVICE: "samples of a device",
    quantities.TOKENS: "tokens",
    quantities.TOKENS_OF_DEVICE: "tokens of a device",
}
_PARTIAL_COPIES = (
    "some devices may not be counted, because the model is sharded over them",
    "the two may come from different runs",
)
_OTHER_SAMPLES = (
    "samples may be shorter than the longest, with padding not counted",
    "a step may accumulate the gradients of several batches",
    "several devices may share one sample",
)
_OTHER_RUNS = (
    "throughput and time may come from different runs",
    "the time may include work that the throughput leaves out, such as data loading or the first step",
)


@check("Is the throughput of a device the throughput of the job / devices?", "throughputs of one device and of the job")
def device_throughputs(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare each throughput per device with the throughput of the job."""
    for of_device_metric, of_job_metric in (
        (quantities.SAMPLES_OF_DEVICE, quantities.THROUGHPUT),
        (quantities.TOKENS_OF_DEVICE, quantities.TOKENS),
    ):
        for of_device, of_job in results.pairs(of_device_metric, of_job_metric):
            devices = of_device.world_size
            if not devices:
                continue
            low, high = of_job.printed.bounds(truncated=True)
            if of_device.printed.overlaps(low / devices, high / devices):
                yield of_device, of_job
                continue
            expected = float(of_job.printed.exact / devices)
            computation = f"{of_job.text} / {devices} = {expected:.5g}, printed {of_device.text}"
            if devices > 1 and of_device.printed.overlaps(low, high):
                computation += ": both are of the same scope"
            deviation = relative_deviation(of_device.value, expected)
            cells = (of_device, of_job)
            yield AuditDiagnostic(Severity.ERROR, cells, computation, _PARTIAL_COPIES, deviation=deviation)


@check("Do throughputs in tokens, samples and steps agree?", "pairs of throughputs with their quotient")
def token_throughputs(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare quotients of two throughputs with the printed quotient."""
    for metric, second_metric, column in _QUOTIENTS:
        for throughput, second in results.pairs(metric, second_metric):
            name = _LENGTH
            if column in throughput.facts or column != "tokens_per_sample":
                name = column
            printed = throughput.get(name)
            if not (printed and throughput.printed.is_positive and second.printed.is_positive):
                continue
            low, high = quotient(throughput.printed, second.printed, truncated=True)
            # Tokens of a sample and of a step are means, and printed without decimals.
            rounding = Fraction(0) if name in ("global_batch", _LENGTH) else Fraction(1)
            if low <= Fraction(printed) + rounding and Fraction(printed) - rounding / 2 <= high:
                yield throughput, second
                continue
            computed = throughput.value / second.value
            computation = f"{throughput.text} {throughput.metric} / {second.text} {second.metric} = {computed:.5g}"
            computation += f", but {name} is {printed:g}"
            severity = Severity.WARNING if name == _LENGTH or name in throughput.inferred else Severity.ERROR
            deviation = relative_deviation(computed, printed)
            yield AuditDiagnostic(severity, (throughput, second), computation, _OTHER_SAMPLES, deviation=deviation)


@check("Do throughputs and times agree?", "times with a throughput")
def task_throughputs(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare times of tasks and steps with the throughputs of their configuration."""
    for seconds in results.select(quantities.TASK, quantities.STEP):
        if not seconds.printed.is_positive:
            continue
        if batch := int(seconds.get(quantities.UNCLEAR_BATCH) or 0):
            yield from _compare_with_unclear_batch(results, seconds, batch)
        for metric, amount in _amounts(seconds).items():
            for throughput in results.same_configuration(seconds, metric):
                diagnostic = _compare_with_time(results, seconds, throughput, amount)
                yield diagnostic or (throughput, seconds)


def _compare_with_unclear_batch(
    results: Results, seconds: ResultCell, batch: int
) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare throughputs with a batch of a device, of a copy or of the job."""
    devices = seconds.world_size or 1
    copies = max(1, devices // copy_devices(seconds))
    passes = int(seconds.get(quantities.ACCUMULATION) or 1)
    for throughput in results.same_configuration(seconds, quantities.THROUGHPUT):
        if throughput.get(quantities.UNCLEAR_BATCH) != seconds.get(quantities.UNCLEAR_BATCH):
            continue
        diagnostics: list[AuditDiagnostic] = []
        readings = {batch * factor * each for factor in (1, copies, devices) for each in (1, passes)}
        for samples in sorted(readings):
            if diagnostic := _compare_with_time(results, seconds, throughput, Fraction(samples)):
                diagnostics.append(diagnostic)
        if len(diagnostics) < len(readings):
            yield throughput, seconds
        else:
            yield min(diagnostics, key=lambda diagnostic: diagnostic.deviation or 0)


def _amounts(seconds: ResultCell) -> Mapping[str, Fraction]:
    """Return the samples and tokens per step, of the job and of a device."""
    devices = seconds.world_size or 0
    if seconds.metric == quantities.TASK:
        samples = Fraction(int(seconds.get("samples_per_task") or 0) * devices)
        if samples > 0:
            return {quantities.THROUGHPUT: samples}
        return {}
    samples = Fraction(int(seconds.get("global_batch") or 0))
    if samples <= 0:
        return {}
    amounts = {quantities.THROUGHPUT: samples}
    if devices:
        amounts[quantities.SAMPLES_OF_DEVICE] = samples / devices
    if length := int(seconds.get("sequence_length") or 0):
        amounts[quantities.TOKENS] = samples * length
        if devices:
            amounts[quantities.TOKENS_OF_DEVICE] = samples * length / devices
    return amounts


def _compare_with_time(
    results: Results, seconds: ResultCell, throughput: ResultCell, amount: Fraction
) -> AuditDiagnostic | None:
    expected = float(amount) / seconds.value
    # The mean of throughputs need not be the reciprocal of the mean of times.
    is_between, reason = abs(throughput.value / expected - 1) <= FAR_APART, f"runs up to {FAR_APART:.0%} apart"
    interval = results.throughput(throughput).logarithm.factor_interval() if throughput.printed.is_positive else None
    if interval:
        is_between, reason = interval.low <= expected <= interval.high, "the spread of its runs"
    if throughput.printed.overlaps(*integer_quotient(amount, seconds.printed)) or (
        throughput.printed.computed and is_between
    ):
        return None
    excess = throughput.value / expected - 1
    difference = f"{abs(excess):.1%} {'more' if excess > 0 else 'less'}"
    noun, time = _ITEMS[throughput.metric], seconds.text
    if not time.endswith("s"):
        time += " s"
    computation = f"{float(amount):.12g} {noun} in {time} are {expected:.4g} {noun.partition(' ')[0]}/s, "
    computation += f"printed {throughput.text}, {difference}"
    batch_per_device = seconds.get("batch_per_device") or 0
    global_batch = int(batch_per_device * (seconds.world_size or 0))
    # The printed global batch may be wrong, and batch per device × devices fit throughput and time.
    is_other_batch = (
        seconds.metric == quantities.STEP
        and global_batch not in (0, amount)
        and throughput.metric == quantities.THROUGHPUT
    )
    if is_other_batch and throughput.printed.overlaps(*integer_quotient(global_batch, seconds.printed)):
        computation += f". {batch_per_device:g} × {seconds.world_size} = {global_batch} samples would fit"
    if is_between:
        computation += f"; {reason} may explain it"
    severity = Severity.WARNING if is_between else Severity.ERROR
    return AuditDiagnostic(severity, (throughput, seconds), computation, _OTHER_RUNS, deviation=abs(excess))
