"""The same configuration in several places: with different numbers, or twice in one table with the same."""

from collections.abc import Iterator

from dlperf_study.analysis.scaling import MARGIN
from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

#: How near the quotient of two numbers must be to a whole factor for the scope to be suspected.
NEAR = 0.01
_WHY = ("the tables may be of different runs, dates or versions", "a condition may differ that the tables do not tell")


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every configuration whose throughput stands in several places."""
    rates = (cell for cell in results.of(THROUGHPUT) if cell.printed.positive)
    groups = grouped(rates, lambda cell: (cell.estimator, *cell.configuration))
    yield from (_examined(cells) for cells in groups.values() if len(cells) > 1)


def _examined(cells: list[ResultCell]) -> AuditDiagnostic | None:
    ordered = sorted(cells, key=lambda cell: cell.value)
    least, largest = ordered[0], ordered[-1]
    if not largest.printed.exceeds(least.printed):
        return _twice(cells)
    quotient = largest.value / least.value
    said = f"{', '.join(f'{cell.text} ({cell.key})' for cell in ordered)}: up to {quotient - 1:.2%} apart"
    severity = Severity.WARNING if quotient > 1 + MARGIN else Severity.NOTE
    return AuditDiagnostic(severity, tuple(ordered), said + _scope(least, quotient), _WHY)


def _twice(cells: list[ResultCell]) -> AuditDiagnostic | None:
    """Find the rows of one table that are of one point of one curve, and print the same."""
    groups = grouped(cells, lambda cell: (cell.table, cell.point)).values()
    same = next((group for group in groups if len(group) > 1), None)
    if same is None:
        return None
    said = f"{same[0].text} stands {len(same)} times in one table, for the same configuration"
    return AuditDiagnostic(Severity.NOTE, tuple(same), said, _WHY)


def _scope(cell: ResultCell, quotient: float) -> str:
    """Return the suspicion that one number is of a device or a node and the other of the job."""
    factors = {cell.world_size: "devices", cell.get("nodes"): "nodes"}
    near = [what for factor, what in factors.items() if factor and factor > 1 and abs(quotient / factor - 1) < NEAR]
    return f", the factor of its {near[0]}: their scopes may differ" if near else ""


CHECK = Check("Do tables agree on what they have in common?", "configurations that stand in several places", examine)
