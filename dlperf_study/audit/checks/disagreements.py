"""The same configuration several times: with different numbers, or twice in one table with the same number."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import FAR_APART, AuditDiagnostic, Check
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

#: A quotient of two numbers this near to the number of devices or nodes suggests different scopes.
NEAR = 0.01
_EXPLANATIONS = (
    "the tables may be of different runs, dates or versions",
    "a condition may differ that the tables do not tell",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every configuration with several throughputs."""
    rates = (cell for cell in results.of(THROUGHPUT) if cell.printed.is_positive)
    for cells in grouped(rates, lambda cell: (cell.estimator, *cell.configuration)).values():
        if len(cells) < 2:
            continue
        diagnostic = _different_numbers(cells)
        rows = grouped(cells, lambda cell: (cell.table, cell.point)).values()
        repeated = next((row for row in rows if len(row) > 1), None)
        if diagnostic is None and repeated:
            computation = f"{repeated[0].text} is {len(repeated)} times in one table, for the same configuration"
            diagnostic = AuditDiagnostic(Severity.NOTE, tuple(repeated), computation, _EXPLANATIONS)
        yield diagnostic


def _different_numbers(cells: list[ResultCell]) -> AuditDiagnostic | None:
    ordered = sorted(cells, key=lambda cell: cell.value)
    smallest, largest = ordered[0], ordered[-1]
    if not largest.printed.exceeds(smallest.printed):
        return None
    quotient = largest.value / smallest.value
    listed = ", ".join(f"{cell.text} ({cell.key})" for cell in ordered)
    computation = f"{listed}: up to {quotient - 1:.2%} apart"
    factors = {smallest.world_size: "devices", smallest.get("nodes"): "nodes"}
    for factor, noun in factors.items():
        if factor and factor > 1 and abs(quotient / factor - 1) < NEAR:
            computation += f", the factor of its {noun}: their scopes may differ"
            break
    severity = Severity.WARNING if quotient > 1 + FAR_APART else Severity.NOTE
    return AuditDiagnostic(severity, tuple(ordered), computation, _EXPLANATIONS)


CHECK = Check("Do tables agree on what they have in common?", "configurations with several throughputs", examine)
