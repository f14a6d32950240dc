"""The stages of a task: parts and their whole, and work that should not depend on the number of devices."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import ResultCell, values_of
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

TASK, BATCHES, EXCHANGE = "task_process_seconds", "batch_process_seconds", "report_gradient_seconds"
UPDATE, PASSES, COPY = "apply_gradients_seconds", "forward_backward_seconds", "tensor_numpy_seconds"
#: Each stage, and what it is a part of: none can take longer. In ElasticDL the exchange begins with the copy.
STAGE_TOTALS = ((BATCHES, TASK), (EXCHANGE, TASK), (COPY, TASK), (UPDATE, TASK), (PASSES, TASK), (COPY, EXCHANGE))
#: The stages that follow each other and make up a task.
CONSECUTIVE_STAGES = (EXCHANGE, UPDATE, PASSES)
#: How many times as long the same computation may take on another number of devices.
MOST_CHANGE = 1.5
_OTHER_TASKS = ("they may be of different tasks",)
_COPY_SEPARATE = (
    "this table may count copying apart from the exchange; then its exchange is not that of other tables",
)
_OTHER_STAGES = ("a task may have stages that are not printed",)
_ASYNCHRONOUS = (
    "a device computes while the program goes on: its time counts in whichever stage first waits for a result, "
    "so stage times taken on the host do not say where time goes",
)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every stage of a task, every sum of stages, and every stage along a series."""
    for metric, total_metric in STAGE_TOTALS:
        for part, total in results.pairs(metric, total_metric):
            yield _compare_with_total(part, total)
    for task in results.of(TASK):
        stages = []
        for metric in CONSECUTIVE_STAGES:
            if stage := results.at_same_point(task, metric):
                stages.append(stage)
        if len(stages) == len(CONSECUTIVE_STAGES):
            yield _compare_sum(task, stages)
    for metric in (UPDATE, PASSES):
        for cells in grouped(results.of(metric), lambda cell: cell.series).values():
            if len(cells) < 2:
                continue
            # The same work per device takes equally long on any number of devices.
            cells.sort(key=lambda cell: cell.world_size or 0)
            values = values_of(cells)
            if max(values) <= MOST_CHANGE * min(values):
                yield None
            else:
                seconds = ", ".join(f"{cell.text} s on {cell.world_size}" for cell in cells)
                computation = f"{metric} of the same work per device is {seconds} devices"
                yield AuditDiagnostic(Severity.WARNING, tuple(cells), computation, _ASYNCHRONOUS)


def _compare_with_total(part: ResultCell, total: ResultCell) -> AuditDiagnostic | None:
    if not part.printed.exceeds(total.printed):
        return None
    if total.metric == EXCHANGE:
        computation = f"copying gradients takes {part.text} s, the exchange that begins with it {total.text} s"
        return AuditDiagnostic(Severity.WARNING, (part, total), computation, _COPY_SEPARATE)
    computation = f"{part.metric} is {part.text} s, more than {total.metric}, of which it is a part, {total.text} s"
    return AuditDiagnostic(Severity.ERROR, (part, total), computation, _OTHER_TASKS)


def _compare_sum(task: ResultCell, stages: list[ResultCell]) -> AuditDiagnostic | None:
    low, high, total = Fraction(0), Fraction(0), 0.0
    for stage in stages:
        stage_low, stage_high = stage.printed.bounds(truncated=True)
        low += stage_low
        high += stage_high
        total += stage.value
    if task.printed.overlaps(low, high):
        return None
    computation = f"{' + '.join(stage.text for stage in stages)} = {total:.4g} s, printed {task.text}"
    severity = Severity.ERROR if low > task.printed.bounds(truncated=True)[1] else Severity.NOTE
    return AuditDiagnostic(severity, (task, *stages), computation, _OTHER_STAGES)


CHECK = Check("Do the stages of a task add up?", "stage times", examine)
