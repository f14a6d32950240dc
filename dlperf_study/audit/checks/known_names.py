"""Networks and devices that are named, and of which nothing is known: no check can hold their rates to a peak."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import names_both, unknown_of
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield None for every rate whose network and device are known, one diagnostic for all other rates of a source."""
    groups: dict[str, dict[ResultCell, list[str]]] = {}
    for rate in results.of(THROUGHPUT):
        strange = unknown_of(rate) if names_both(rate) else []
        if strange:
            groups.setdefault(str(rate.get("source")), {})[rate] = strange
        elif names_both(rate):
            yield None
    yield from (_found(source, rates) for source, rates in groups.items())


def _found(source: str, rates: dict[ResultCell, list[str]]) -> AuditDiagnostic:
    words = ", ".join(dict.fromkeys(word for strange in rates.values() for word in strange))
    many = f"{len(rates)} rates are" if len(rates) > 1 else "1 rate is"
    said = f"{source}: {many} held against no peak, as no table of facts has {words}"
    return AuditDiagnostic(Severity.NOTE, tuple(rates), said)


CHECK = Check("Is it known what a network asks for and a device can do?", "rates with network and device", examine)
