"""Rates beside what their devices can do: throughput × FLOPs of a sample / devices, against the peak."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, demand
from dlperf_study.audit.limits import WINOGRAD, Peak, Work, impossible, needed, peak_of, size_of, work_of
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

_CLOCK = "the device may be another variant or run at another clock than the peak assumes"

Excess = tuple[ResultCell, Work, Peak]


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield None for every possible rate, and one diagnostic for all impossible rates of a network in a source."""
    beyond: list[Excess] = []
    for rate in results.of(THROUGHPUT):
        size, peak = size_of(rate), peak_of(rate)
        work = work_of(rate, size) if size or rate.get("flops_per_sample") else None
        if not (work and peak and rate.world_size):
            continue
        if needed(rate, work) <= peak.flops:
            yield None
        else:
            beyond.append((rate, work, peak))
    yield from map(_found, grouped(beyond, _network).values())


def _network(excess: Excess) -> tuple[str, ...]:
    rate, work, peak = excess
    return str(rate.get("source")), work.model, peak.precision


def _found(excesses: list[Excess]) -> AuditDiagnostic:
    ordered = sorted(excesses, key=lambda excess: needed(excess[0], excess[1]) / excess[2].flops, reverse=True)
    rate, work, peak = ordered[0]
    cells = tuple(one for one, _, _ in ordered)
    if impossible(rate, work, peak):
        return AuditDiagnostic(Severity.ERROR, cells, demand(rate, work, peak), (_CLOCK,))
    return AuditDiagnostic(Severity.WARNING, cells, demand(rate, work, peak), (WINOGRAD, _CLOCK))


CHECK = Check("Can the devices compute that fast?", "rates of known networks on known devices", examine)
