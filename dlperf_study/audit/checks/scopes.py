"""Numbers of the wrong scope: of one device or node where its neighbours are of the whole job, or the reverse."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Rate, Results
from dlperf_study.diagnostic import Severity
from dlperf_study.wording import counted

#: How near a quotient must be to a whole factor, and to 1 for a curve to be called flat.
NEAR, FLAT = 0.03, 0.15
_WHY = ("scaling may really be that poor: all devices share a link, a disk or cores",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every curve, and for every point of those that are not flat."""
    for curve in results.curves():
        if curve[0].cell.metric == THROUGHPUT and curve[-1].point.devices > curve[0].point.devices:
            flat = _flat(curve)
            yield flat
            if flat is None:
                yield from (_examined(curve, position) for position in range(1, len(curve)))


def _flat(curve: list[Rate]) -> AuditDiagnostic | None:
    """Find a curve of rates per device: none rises, and none falls by more than a scaling loss."""
    first, others = curve[0], [rate for rate in curve if rate.point.devices > curve[0].point.devices]
    shares = [rate.cell.value / first.cell.value for rate in others]
    if len(others) < 2 or not all(1 - FLAT <= share <= 1 + NEAR for share in shares):
        return None
    said = ", ".join(f"{rate.cell.text} on {rate.point.devices}" for rate in curve)
    said = f"{said} devices: the rate hardly changes, as the rate of one device does and that of a job does not"
    return AuditDiagnostic(Severity.WARNING, tuple(rate.cell for rate in curve), said, _WHY)


def _examined(curve: list[Rate], position: int) -> AuditDiagnostic | None:
    """Find a point that lies on the line of its neighbour once it is multiplied, or divided, by its own factor."""
    fewer, more = curve[position - 1], curve[position]
    linear = fewer.cell.value * more.point.devices / fewer.point.devices
    for factor, what in _factors(more.cell):
        if abs(more.cell.value * factor / linear - 1) <= NEAR and _goes_on(more, factor, curve[position + 1 :]):
            return _found(fewer, more, f"{more.cell.text} × {factor} {what}", more.cell.value * factor, linear)
        if abs(more.cell.value / factor / linear - 1) <= NEAR:
            return _found(fewer, more, f"{more.cell.text} / {factor} {what}", more.cell.value / factor, linear)
    return None


def _factors(cell: ResultCell) -> list[tuple[int, str]]:
    """Return the factors between scopes at a point, each with its name; of equal ones the first."""
    devices, nodes = cell.world_size or 1, int(cell.get("nodes") or 1)
    named = ((devices, "devices"), (nodes, "nodes"), (devices // nodes, "devices of a node"))
    return [(factor, what) for factor, what in {f: w for f, w in reversed(named)}.items() if factor > 1]


def _goes_on(more: Rate, factor: int, later: list[Rate]) -> bool:
    """Say whether the curve beyond a point is no reason against multiplying it."""
    return not later or later[0].cell.value >= more.cell.value * factor * (1 - NEAR)


def _found(fewer: Rate, more: Rate, computation: str, corrected: float, linear: float) -> AuditDiagnostic:
    place = f"{fewer.cell.text} on {counted(fewer.point.devices, 'device')}"
    said = (
        f"{computation} = {corrected:.5g}, which is where {place} leads ({linear:.5g} on {more.point.devices}); "
        f"{more.cell.text} is off by that factor"
    )
    return AuditDiagnostic(Severity.WARNING, (fewer.cell, more.cell), said, _WHY)


CHECK = Check("Is every rate of the same scope?", "curves, and their points", examine)
