"""Rates of the wrong scope: of one device or node where the rest of the curve is of the whole job, or the reverse."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.rates import Rate
from dlperf_study.audit.result_cell import THROUGHPUT
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.wording import counted

#: Limits of relative differences: to a number of devices or nodes, and to a constant rate.
NEAR, FLAT = 0.03, 0.15
_EXPLANATIONS = ("scaling may really be that poor: all devices share a link, a disk or cores",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every curve, and for every point of the curves that are not flat."""
    for curve in results.curves():
        if curve[0].cell.metric != THROUGHPUT or curve[-1].point.devices <= curve[0].point.devices:
            continue
        first = curve[0]
        later = [rate.cell.value for rate in curve if rate.point.devices > first.point.devices]
        # Rates per device: none rises, and none falls by more than a scaling loss.
        hardly_falls = len(later) > 1 and min(later) / first.cell.value >= 1 - FLAT
        if hardly_falls and max(later) / first.cell.value <= 1 + NEAR:
            rates = ", ".join(f"{rate.cell.text} on {rate.point.devices}" for rate in curve)
            computation = f"{rates} devices: the rate hardly changes, "
            computation += "as the rate of one device does and that of a job does not"
            yield AuditDiagnostic(Severity.WARNING, tuple(rate.cell for rate in curve), computation, _EXPLANATIONS)
            continue
        yield None
        for position in range(1, len(curve)):
            yield _find_wrong_scope(curve, position)


def _find_wrong_scope(curve: list[Rate], position: int) -> AuditDiagnostic | None:
    """Find a point that is linear after multiplication, or division, by its devices, nodes or devices per node."""
    fewer, more = curve[position - 1], curve[position]
    linear = fewer.cell.value * more.point.devices / fewer.point.devices
    devices, nodes = more.point.devices, int(more.cell.get("nodes") or 1)
    # Of equal factors the noun of the widest scope is named.
    nouns = {devices // nodes: "devices of a node"}
    nouns |= {nodes: "nodes"}
    nouns |= {devices: "devices"}
    for factor, noun in nouns.items():
        if factor <= 1:
            continue
        multiplied, divided = more.cell.value * factor, more.cell.value / factor
        continues = position + 1 == len(curve) or curve[position + 1].cell.value >= multiplied * (1 - NEAR)
        if abs(multiplied / linear - 1) <= NEAR and continues:
            return _wrong_scope(fewer, more, f"{more.cell.text} × {factor} {noun} = {multiplied:.5g}", linear)
        if abs(divided / linear - 1) <= NEAR:
            return _wrong_scope(fewer, more, f"{more.cell.text} / {factor} {noun} = {divided:.5g}", linear)
    return None


def _wrong_scope(fewer: Rate, more: Rate, corrected: str, linear: float) -> AuditDiagnostic:
    computation = (
        f"{corrected}, which is where {fewer.cell.text} on {counted(fewer.point.devices, 'device')} leads "
        f"({linear:.5g} on {more.point.devices}); {more.cell.text} is off by that factor"
    )
    return AuditDiagnostic(Severity.WARNING, (fewer.cell, more.cell), computation, _EXPLANATIONS)


CHECK = Check("Is every rate of the same scope?", "curves, and their points", examine)
