"""The stages of a task, beside each other: parts and their whole, and work that should not depend on devices."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import starmap

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

TASK, BATCHES, EXCHANGE = "task_process_seconds", "batch_process_seconds", "report_gradient_seconds"
UPDATE, PASSES, COPY = "apply_gradients_seconds", "forward_backward_seconds", "tensor_numpy_seconds"
#: What lies inside what, by metric.
INSIDE = tuple((part, TASK) for part in (BATCHES, EXCHANGE, COPY, UPDATE, PASSES))
#: What a task consists of, one after the other.
PARTS = (EXCHANGE, UPDATE, PASSES)
#: How many times as long a worker's own computation may take beside other workers.
ALIKE = 1.5
_ASYNCHRONOUS = (
    "a device computes while the program goes on: its time counts in whichever stage first waits for a result, "
    "so stage times taken on the host do not say where time goes"
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every pair of whole and part, every sum of parts, and every stage along a series."""
    for inner, outer in INSIDE:
        yield from starmap(_part, results.pairs(inner, outer))
    yield from starmap(_copy, results.pairs(COPY, EXCHANGE))
    for whole in results.of(TASK):
        parts = [cell for name in PARTS if (cell := results.beside(whole, name))]
        if len(parts) == len(PARTS):
            yield _sum(whole, parts)
    for stage in (UPDATE, PASSES):
        yield from _along(results.of(stage))


def _part(part: ResultCell, whole: ResultCell) -> AuditDiagnostic | None:
    if not part.printed.exceeds(whole.printed):
        return None
    said = f"{part.metric} is {part.text} s, more than {whole.metric}, of which it is a part, {whole.text} s"
    return AuditDiagnostic(Severity.ERROR, (part, whole), said, ("they may be of different tasks",))


def _copy(copy: ResultCell, exchange: ResultCell) -> AuditDiagnostic | None:
    """Find a copy that takes longer than the exchange, which in ElasticDL begins with it."""
    if not copy.printed.exceeds(exchange.printed):
        return None
    said = f"copying gradients takes {copy.text} s, the exchange that begins with it {exchange.text} s"
    why = "this table may count copying apart from the exchange; then its exchange is not that of other tables"
    return AuditDiagnostic(Severity.WARNING, (copy, exchange), said, (why,))


def _sum(whole: ResultCell, parts: list[ResultCell]) -> AuditDiagnostic | None:
    bounds = [part.printed.bounds(truncated=True) for part in parts]
    low, high = (sum((ends[end] for ends in bounds), Fraction(0)) for end in (0, 1))
    if whole.printed.meets(low, high):
        return None
    total = sum(part.value for part in parts)
    said = f"{' + '.join(part.text for part in parts)} = {total:.4g} s, printed {whole.text}"
    severity = Severity.ERROR if low > whole.printed.bounds(truncated=True)[1] else Severity.NOTE
    return AuditDiagnostic(severity, (whole, *parts), said, ("a task may have stages that are not printed",))


def _along(cells: list[ResultCell]) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for each series: the same work per device must take as long on any number of them."""
    for group in grouped(cells, lambda cell: cell.series).values():
        line = sorted(group, key=lambda cell: cell.world_size or 0)
        if len(line) > 1:
            yield _change(line)


def _change(line: list[ResultCell]) -> AuditDiagnostic | None:
    if max(cell.value for cell in line) <= ALIKE * min(cell.value for cell in line):
        return None
    seen = ", ".join(f"{cell.text} s on {cell.world_size}" for cell in line)
    said = f"{line[0].metric} of the same work per device is {seen} devices"
    return AuditDiagnostic(Severity.WARNING, tuple(line), said, (_ASYNCHRONOUS,))


CHECK = Check("Do the stages of a task add up?", "stage times", examine)
