"""Rates and the peak of their devices: throughput × FLOPs of a sample / devices, compared with the peak."""

from collections.abc import Iterator

from dlperf_study.analysis.utilisation import WINOGRAD
from dlperf_study.audit.audit_check import AuditDiagnostic, Check, demand_phrase
from dlperf_study.audit.limits import Work, is_impossible, peak_of, required_flops, size_of, work_of
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.study.device_peaks import DevicePeak

_CLOCK = "the device may be another variant or run at another clock than the peak assumes"
#: A rate, its work, the peak of its device, and how many times the peak it requires.
Excess = tuple[ResultCell, Work, DevicePeak, float]


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield None for every possible rate, and one diagnostic for all impossible rates of a network in a source."""
    above_peak: dict[tuple[str, str, str], list[Excess]] = {}
    for rate in results.of(THROUGHPUT):
        size, peak = size_of(rate), peak_of(rate)
        work = work_of(rate, size) if size or rate.get("flops_per_sample") else None
        if not (work and peak and rate.world_size):
            continue
        required = required_flops(rate, work)
        if required <= peak.flops:
            yield None
        else:
            network = str(rate.get("source")), work.model, peak.number_format
            above_peak.setdefault(network, []).append((rate, work, peak, required / peak.flops))
    for excesses in above_peak.values():
        excesses.sort(key=lambda excess: excess[-1], reverse=True)
        cells = tuple(excess[0] for excess in excesses)
        rate, work, peak, _ = excesses[0]
        if is_impossible(rate, work, peak):
            yield AuditDiagnostic(Severity.ERROR, cells, demand_phrase(rate, work, peak), (_CLOCK,))
        else:
            yield AuditDiagnostic(Severity.WARNING, cells, demand_phrase(rate, work, peak), (WINOGRAD, _CLOCK))


CHECK = Check("Can the devices compute that fast?", "rates of known networks on known devices", examine)
