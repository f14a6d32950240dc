"""The samples of a task: its batches × the samples of a batch."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

SAMPLES, BATCHES, BATCH = "samples_per_task", "batches_per_task", "batch_per_device"
_EXPLANATIONS = ("the last batch of a task may be smaller or larger",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every table that prints all three numbers."""
    tables: dict[object, dict[str, ResultCell]] = {}
    for cell in results.of(SAMPLES, BATCHES, BATCH):
        tables.setdefault(cell.table, {})[cell.metric] = cell
    for cells in tables.values():
        if len(cells) < 3:
            continue
        samples, batches, batch = cells[SAMPLES], cells[BATCHES], cells[BATCH]
        expected = batches.value * batch.value
        if expected == samples.value:
            yield None
        else:
            computation = f"{batches.text} × {batch.text} = {expected:g}, printed {samples.text}"
            yield AuditDiagnostic(Severity.ERROR, (samples, batches, batch), computation, _EXPLANATIONS)


CHECK = Check("Is a task as large as its batches?", "tables with batches and tasks", examine)
