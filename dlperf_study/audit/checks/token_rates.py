"""Rates in tokens, samples and steps of one row: their quotients are the tokens of a sample and the size of a step."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import (
    SAMPLES_OF_DEVICE,
    STEPS,
    THROUGHPUT,
    TOKENS,
    TOKENS_OF_DEVICE,
    ResultCell,
    quotient,
)
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

#: Two rates, and the column that is their quotient.
_QUOTIENTS = (
    (TOKENS, THROUGHPUT, "tokens_per_sample"),
    (TOKENS_OF_DEVICE, SAMPLES_OF_DEVICE, "tokens_per_sample"),
    (TOKENS, STEPS, "tokens_per_step"),
    (THROUGHPUT, STEPS, "global_batch"),
)
_LENGTH = "sequence_length"
_EXPLANATIONS = (
    "samples may be shorter than the longest, and padding is not counted",
    "a step may gather the gradients of several batches",
    "several devices may share one sample",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every two rates of a point whose quotient the table prints."""
    for metric, second_metric, column in _QUOTIENTS:
        for rate, second in results.pairs(metric, second_metric):
            name = column if column in rate.facts or column != "tokens_per_sample" else _LENGTH
            printed = rate.get(name)
            if printed and rate.printed.is_positive and second.printed.is_positive:
                yield _compare(rate, second, name, printed)


def _compare(rate: ResultCell, second: ResultCell, name: str, printed: float) -> AuditDiagnostic | None:
    low, high = quotient(rate.printed, second.printed, truncated=True)
    # Tokens of a sample and of a step are means, and printed without decimals.
    rounding = Fraction(0) if name in ("global_batch", _LENGTH) else Fraction(1)
    if low <= Fraction(printed) + rounding and Fraction(printed) - rounding / 2 <= high:
        return None
    computation = f"{rate.text} {rate.metric} / {second.text} {second.metric} = {rate.value / second.value:.5g}"
    is_inferred = name == _LENGTH or name in rate.inferred
    severity = Severity.WARNING if is_inferred else Severity.ERROR
    return AuditDiagnostic(severity, (rate, second), f"{computation}, but {name} is {printed:g}", _EXPLANATIONS)


CHECK = Check("Do rates in tokens, samples and steps agree?", "pairs of rates with their quotient", examine)
