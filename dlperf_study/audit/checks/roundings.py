"""One way of rounding for all ratios of a table."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, texts
from dlperf_study.audit.checks.ratios import finest_step, recomputed
from dlperf_study.audit.result_cell import EFFICIENCY, RELATIVE, ROUNDINGS, SPEEDUP, THROUGHPUT, TRUNCATED, ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every metric of every table with ratios that fit some rounding."""
    printed = [cell for cell in results.of(SPEEDUP, EFFICIENCY, RELATIVE) if not cell.printed.computed]
    fitting = {cell: fits for cell in printed if (fits := _fits(results, cell))}
    for column in grouped(fitting, lambda cell: (*cell.table, cell.metric)).values():
        yield _examined({cell: fitting[cell] for cell in column})


def _examined(fits: dict[ResultCell, tuple[str, ...]]) -> AuditDiagnostic | None:
    if any(all(name in names for names in fits.values()) for name in ROUNDINGS):
        return None
    cut = [cell for cell, names in fits.items() if names == (TRUNCATED,)]
    rounded = [cell for cell, names in fits.items() if TRUNCATED not in names]
    said = f"{texts(cut)} fit only if cut off, {texts(rounded)} only if rounded"
    return AuditDiagnostic(Severity.NOTE, (*cut, *rounded), said, ("within a unit of the last digit both are right",))


def _fits(results: Results, ratio: ResultCell) -> tuple[str, ...]:
    rate, base = results.beside(ratio, THROUGHPUT), results.baseline_of(ratio)
    if rate is None or base is None or not base.printed.positive:
        return ()
    return ratio.printed.roundings_from(recomputed(ratio, rate, base), finest_step(results, ratio))


CHECK = Check("Are all ratios of a table rounded in one way?", "columns of ratios", examine)
