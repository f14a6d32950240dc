"""The size of a task: its batches × the samples of a batch."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

SAMPLES, BATCHES, BATCH = "samples_per_task", "batches_per_task", "batch_per_device"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every table that prints all three."""
    tables: dict[object, dict[str, ResultCell]] = {}
    for cell in results.of(SAMPLES, BATCHES, BATCH):
        tables.setdefault(cell.table, {})[cell.metric] = cell
    yield from (_examined(**cells) for cells in tables.values() if len(cells) == 3)


def _examined(
    samples_per_task: ResultCell, batches_per_task: ResultCell, batch_per_device: ResultCell
) -> AuditDiagnostic | None:
    product = batches_per_task.value * batch_per_device.value
    if product == samples_per_task.value:
        return None
    said = f"{batches_per_task.text} × {batch_per_device.text} = {product:g}, printed {samples_per_task.text}"
    cells = (samples_per_task, batches_per_task, batch_per_device)
    return AuditDiagnostic(Severity.ERROR, cells, said, ("the last batch of a task may be smaller or larger",))


CHECK = Check("Is a task as large as its batches?", "tables with batches and tasks", examine)
