"""Stage times of a task, and communication shares against speedups."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit import quantities
from dlperf_study.audit.checks import Agreeing, AuditDiagnostic, check
from dlperf_study.audit.published.source import parse_ratio_terms
from dlperf_study.audit.result_cell import ROUNDINGS, ResultCell, list_values
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity

COMPUTATION_TO_COMMUNICATION, BATCHES = "computation_to_communication", "batch_process_seconds"
UPDATE, PASSES, COPY = "apply_gradients_seconds", "forward_backward_seconds", "tensor_numpy_seconds"
#: The parts of a task: none can take longer.
PARTS = (BATCHES, quantities.REPORT_GRADIENT, COPY, UPDATE, PASSES)
#: The stages that follow each other and make up a task.
CONSECUTIVE_STAGES = (quantities.REPORT_GRADIENT, UPDATE, PASSES)
#: How many times as long the same computation may take on another number of devices.
MOST_CHANGE = 1.5
#: A speedup may be this much below what its communication allows without a note.
LOSS = 0.05
_OTHER_TASKS = ("they may come from different tasks",)
_COPY_SEPARATE = ("this table may count copying apart from the gradient report, unlike other tables",)
_OTHER_STAGES = ("a task may have stages that are not printed",)
_ASYNCHRONOUS = (
    "stage times taken on the host mislead: the device works asynchronously, so its time counts in the stage that "
    "first waits for a result",
)
_OTHER_RUNS = ("share and times may come from different runs",)
_OVERLAP = ("communication may overlap computation, or computation may be faster on more devices",)
_OTHER_LOSSES = (
    "the rest may be slower computation next to other workers, or waiting that the profile does not count as "
    "communication",
)


@check("Do the stages of a task add up?", "stage times")
def stages(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare stage times with their task, their sum, and along a series."""
    for metric in PARTS:
        for part, task in results.pairs(metric, quantities.TASK):
            if part.printed.exceeds(task.printed):
                computation = f"{part.metric} is {part.text} s, but the whole task, {task.metric}, is "
                yield AuditDiagnostic(Severity.ERROR, (part, task), f"{computation}{task.text} s", _OTHER_TASKS)
            else:
                yield part, task
    # In ElasticDL the gradient report begins with the copy.
    for copy, report in results.pairs(COPY, quantities.REPORT_GRADIENT):
        if copy.printed.exceeds(report.printed):
            computation = f"copying gradients takes {copy.text} s, but the whole gradient report takes "
            yield AuditDiagnostic(Severity.WARNING, (copy, report), f"{computation}{report.text} s", _COPY_SEPARATE)
        else:
            yield copy, report
    for task in results.select(quantities.TASK):
        parts = []
        for metric in CONSECUTIVE_STAGES:
            if stage := results.at_same_point(task, metric):
                parts.append(stage)
        if len(parts) == len(CONSECUTIVE_STAGES):
            yield _compare_sum(task, parts) or (task, *parts)
    for metric in (UPDATE, PASSES):
        for cells in grouped(results.select(metric), lambda cell: cell.series).values():
            if len(cells) < 2:
                continue
            # The same work per device takes equally long on any number of devices.
            cells.sort(key=lambda cell: cell.world_size or 0)
            values = list_values(cells)
            if max(values) <= MOST_CHANGE * min(values):
                yield tuple(cells)
            else:
                seconds = ", ".join(f"{cell.text} s on {cell.world_size}" for cell in cells)
                computation = f"{metric} of the same work per device is {seconds} devices"
                yield AuditDiagnostic(Severity.WARNING, tuple(cells), computation, _ASYNCHRONOUS)


def _compare_sum(task: ResultCell, parts: list[ResultCell]) -> AuditDiagnostic | None:
    low, high, total = Fraction(0), Fraction(0), 0.0
    for stage in parts:
        stage_low, stage_high = stage.printed.bounds(truncated=True)
        low += stage_low
        high += stage_high
        total += stage.value
    if task.printed.overlaps(low, high):
        return None
    computation = f"{' + '.join(stage.text for stage in parts)} = {total:.4g} s, printed {task.text}"
    severity = Severity.ERROR if low > task.printed.bounds(truncated=True)[1] else Severity.NOTE
    return AuditDiagnostic(severity, (task, *parts), computation, _OTHER_STAGES)


@check("Does the share of communication fit the times and the speedup?", "shares")
def shares(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare communication shares with their times and speedups."""
    for share in results.select(quantities.COMMUNICATION, COMPUTATION_TO_COMMUNICATION):
        for task in results.same_configuration(share, quantities.TASK):
            for report in results.same_configuration(share, quantities.REPORT_GRADIENT):
                if 0 < report.printed.exact < task.printed.exact:
                    yield _compare_with_times(share, task, report) or (share, task, report)
    for share, speedup in results.pairs(quantities.COMMUNICATION, quantities.SPEEDUP):
        if share.world_size and share.world_size > 1 and share.value <= 1:
            yield _compare_with_speedup(share, speedup, share.world_size) or (share, speedup)


def _compare_with_times(share: ResultCell, task: ResultCell, report: ResultCell) -> AuditDiagnostic | None:
    task_seconds, report_seconds = task.printed.exact, report.printed.exact
    compute_seconds = task_seconds - report_seconds
    terms = parse_ratio_terms(share.text)
    if terms:
        expected = terms[0] * report_seconds / compute_seconds
        fits = terms[1] in [rounding(expected) for rounding in ROUNDINGS.values()]
        formula = f"({task.text} − {report.text}) : {report.text} = {terms[0]} : {float(expected):.3g}"
    else:
        is_share = share.metric == quantities.COMMUNICATION
        expected = report_seconds / task_seconds if is_share else compute_seconds / report_seconds
        fits = bool(share.printed.roundings_from(expected))
        formula = f"{report.text} of {task.text} are {float(expected):.4g}"
    if fits:
        return None
    cells = (share, task, report)
    return AuditDiagnostic(Severity.ERROR, cells, f"{formula}, printed {share.text}", _OTHER_RUNS)


def _compare_with_speedup(share: ResultCell, speedup: ResultCell, devices: int) -> AuditDiagnostic | None:
    smallest_share, largest_share = share.printed.bounds(truncated=True)
    low, high = devices * (1 - largest_share), devices * (1 - smallest_share)
    allowed = float(devices * (1 - share.printed.exact))
    computation = (
        f"with {share.text} of the time in communication, {devices} devices can be at most "
        f"{allowed:.3g} times as fast as one; printed {speedup.text}"
    )
    if speedup.printed.bounds()[0] > high:
        return AuditDiagnostic(Severity.WARNING, (share, speedup), computation, _OVERLAP)
    if speedup.printed.bounds()[1] < low * Fraction(1 - LOSS):
        if allowed:
            computation += f", so {1 - speedup.value / allowed:.0%} more is lost"
        return AuditDiagnostic(Severity.NOTE, (share, speedup), computation, _OTHER_LOSSES)
    return None
