"""Inputs whose size the source does not print: can it be the usual size of the network?"""

from collections.abc import Iterator

from dlperf_study.analysis.utilisation import WINOGRAD
from dlperf_study.audit.audit_check import AuditDiagnostic, Check, demand_phrase
from dlperf_study.audit.limits import (
    Work,
    is_impossible,
    peak_of,
    required_flops,
    size_of,
    work_of,
    works,
)
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity
from dlperf_study.study.device_peaks import DevicePeak

_SIZE_ELSEWHERE = "the source may state the size elsewhere, in its program for example"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every network of a source without an input size, from its fastest rate per device."""
    rates = []
    for rate in results.of(THROUGHPUT):
        if size_of(rate) is None and not rate.get("flops_per_sample") and rate.world_size:
            rates.append(rate)
    for network_rates in grouped(rates, lambda rate: tuple(map(rate.get, ("source", "model", "precision")))).values():
        fastest = max(network_rates, key=lambda rate: rate.value / (rate.world_size or 1))
        work, peak = work_of(fastest, None), peak_of(fastest)
        if work and peak:
            yield _compare_with_peak(fastest, work, peak)


def _compare_with_peak(rate: ResultCell, work: Work, peak: DevicePeak) -> AuditDiagnostic | None:
    if required_flops(rate, work) <= peak.flops:
        return None
    if is_impossible(rate, work, peak):
        usual = f"and can't be the network's usual {work.size}"
        explanations: tuple[str, ...] = (_SIZE_ELSEWHERE,)
    else:
        usual = f"if it is the network's usual {work.size}"
        explanations = (WINOGRAD, _SIZE_ELSEWHERE)
    computation = f"the size of the input is not stated, {usual}: {demand_phrase(rate, work, peak)}"
    possible = []
    for smaller in works():
        if smaller.model == work.model and smaller.size < work.size and required_flops(rate, smaller) <= peak.flops:
            possible.append(str(smaller.size))
    if possible:
        computation += f". {' or '.join(possible)} would be possible"
    return AuditDiagnostic(Severity.WARNING, (rate,), computation, explanations)


CHECK = Check("Can an input without a size have the usual one?", "networks without a stated input", examine)
