"""All ratios of a table are rounded in the same way."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check, texts_phrase
from dlperf_study.audit.result_cell import EFFICIENCY, RELATIVE, ROUNDINGS, SPEEDUP, THROUGHPUT, TRUNCATED, ResultCell
from dlperf_study.audit.results import Results, recomputed
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = ("within a unit of the last digit both are right",)
#: The possible roundings of each ratio of a column.
Column = dict[ResultCell, tuple[str, ...]]


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every metric of every table with ratios that fit a rounding."""
    columns: dict[tuple[object, ...], Column] = {}
    for ratio in results.of(SPEEDUP, EFFICIENCY, RELATIVE):
        rate, baseline = results.at_same_point(ratio, THROUGHPUT), results.baseline_of(ratio)
        if ratio.printed.computed or rate is None or baseline is None or not baseline.printed.is_positive:
            continue
        roundings = ratio.printed.roundings_from(recomputed(ratio, rate, baseline), results.finest_step(ratio))
        if roundings:
            columns.setdefault((*ratio.table, ratio.metric), {})[ratio] = roundings
    for column in columns.values():
        if set(ROUNDINGS).intersection(*column.values()):
            yield None
            continue
        truncated = [ratio for ratio, roundings in column.items() if roundings == (TRUNCATED,)]
        rounded = [ratio for ratio, roundings in column.items() if TRUNCATED not in roundings]
        computation = f"{texts_phrase(truncated)} fit only if cut off, {texts_phrase(rounded)} only if rounded"
        yield AuditDiagnostic(Severity.NOTE, (*truncated, *rounded), computation, _EXPLANATIONS)


CHECK = Check("Are all ratios of a table rounded in one way?", "columns of ratios", examine)
