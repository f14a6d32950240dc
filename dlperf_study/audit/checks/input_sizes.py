"""Inputs whose size is not stated: could it be the network's usual one?"""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, demand
from dlperf_study.audit.limits import WINOGRAD, Peak, Work, impossible, needed, peak_of, size_of, work_of, works
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

_WHY = "the source may state the size elsewhere, in its program for example"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every network of a source that does not state its input, from its fastest rate per device."""
    for rates in grouped(filter(_without_size, results.of(THROUGHPUT)), _network).values():
        fastest = max(rates, key=lambda rate: rate.value / (rate.world_size or 1))
        work, peak = work_of(fastest, None), peak_of(fastest)
        if work and peak:
            yield _examined(fastest, work, peak)


def _without_size(rate: ResultCell) -> bool:
    return size_of(rate) is None and not rate.get("flops_per_sample") and bool(rate.world_size)


def _network(rate: ResultCell) -> tuple[str, ...]:
    return tuple(str(rate.get(name)) for name in ("source", "model", "precision"))


def _examined(rate: ResultCell, work: Work, peak: Peak) -> AuditDiagnostic | None:
    if needed(rate, work) <= peak.flops:
        return None
    possible = not impossible(rate, work, peak)
    could = f"if it is the network's usual {work.size}" if possible else f"and can't be the network's usual {work.size}"
    said = f"the size of the input is not stated, {could}: {demand(rate, work, peak)}"
    smaller = [other for other in works() if other.model == work.model and other.size < work.size]
    fitting = [str(other.size) for other in smaller if needed(rate, other) <= peak.flops]
    ends = f". {' or '.join(fitting)} would be possible" if fitting else ""
    return AuditDiagnostic(Severity.WARNING, (rate,), said + ends, (WINOGRAD, _WHY) if possible else (_WHY,))


CHECK = Check("Can an input that is not stated be the usual one?", "networks without a stated input", examine)
