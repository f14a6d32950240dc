"""Numbers that no table can hold: beyond a limit of their own, or not the product of the columns next to them."""

from collections.abc import Iterator

from dlperf_study.audit.checks import AuditDiagnostic, check
from dlperf_study.audit.limits import machines
from dlperf_study.audit.result_cell import (
    COMMUNICATION,
    EFFICIENCY,
    HFU,
    MFU,
    RATES,
    RELATIVE,
    SPEEDUP,
    STEP,
    STEP_UNIT,
    STEPS,
    TASK,
    ResultCell,
)
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity
from dlperf_study.metrics.columns import PRODUCTS
from dlperf_study.metrics.utilisation import WINOGRAD, severity_above_peak

#: Metrics that can't be negative, and are not 0 where something was trained.
_POSITIVE = (*RATES, STEPS, SPEEDUP, EFFICIENCY, RELATIVE, STEP, TASK)
#: The longest step of the published figures of this package takes 22 s.
LONGEST_STEP_SECONDS = 100
_TASK_SAMPLES, _TASK_BATCHES, _BATCH = "samples_per_task", "batches_per_task", "batch_per_device"
_ROUNDED_AWAY = ("it may have been rounded away, or stand for no number",)
_LONG_STEP = (
    "a step that gathers the gradients of many batches, or one of a large network on a CPU, may take minutes",
)
_PER_CENT = "it may be in per cent, without its sign"
_OTHER_NODES = ("not every node may have as many devices, or not all of them be used",)
_OTHER_BATCH = (
    "a step may gather the gradients of several batches",
    "several devices may hold one copy of the model, and share its batch",
)
_LAST_BATCH = ("the last batch of a task may be smaller or larger",)
_OTHER_MACHINE = ("the name of the machine may be a slip of the pen for one that has these GPUs",)


@check("Is everything above 0 that has to be?", "rates, ratios and times", compares=False)
def above_zero(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number of these metrics, also of single runs."""
    for cell in results.cells:
        if cell.metric not in _POSITIVE:
            continue
        if cell.value > 0 or _is_rounded_away(results, cell):
            yield None
        else:
            computation = f"{cell.metric} is {cell.text}, and must be above 0"
            yield AuditDiagnostic(Severity.ERROR, (cell,), computation, _ROUNDED_AWAY)


def _is_rounded_away(results: Results, cell: ResultCell) -> bool:
    """Return whether a rate of 0 is less than one unit, as another rate of its row is above 0."""
    rates = filter(None, (results.at_same_point(cell, metric) for metric in RATES))
    return cell.value == 0 and cell.printed.step >= 1 and any(rate.value > 0 for rate in rates)


@check("Can a step take that long?", "times of a step", compares=False)
def durations(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step time: of one that is very long, and whose unit is not printed, it may be wrong."""
    for step in results.of(STEP):
        if step.value <= LONGEST_STEP_SECONDS or step.get(STEP_UNIT):
            yield None
        else:
            computation = f"{STEP} is {step.text}, which is {step.value / 60:.3g} minutes. It looks like milliseconds"
            yield AuditDiagnostic(Severity.WARNING, (step,), computation, _LONG_STEP)


@check("Is every share at most 1?", "shares of a peak and of the time", compares=False)
def shares_up_to_one(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share; `utilisation` examines those of a peak that have FLOPs per sample."""
    for share in results.of(MFU, HFU, COMMUNICATION):
        if share.get("flops_per_sample"):
            continue
        computation = f"{share.metric} is {share.text}, and a share is at most 1"
        if share.printed.bounds()[0] <= 1:
            yield None
        elif share.metric in (MFU, HFU) and severity_above_peak(share.value) is Severity.WARNING:
            yield AuditDiagnostic(Severity.WARNING, (share,), computation, (WINOGRAD, _PER_CENT))
        else:
            yield AuditDiagnostic(Severity.ERROR, (share,), computation, (_PER_CENT,))


@check("Are there as many devices as the nodes hold?", "world sizes printed with nodes and devices per node")
def world_size(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number of devices of a table that prints both of its factors too."""
    return _compare_products(results, "world_size", _OTHER_NODES)


@check("Is a global batch that of all devices?", "global batches printed with devices and batch per device")
def global_batch(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every global batch of a table that prints both of its factors too."""
    return _compare_products(results, "global_batch", _OTHER_BATCH)


def _compare_products(results: Results, name: str, explanations: tuple[str, ...]) -> Iterator[AuditDiagnostic | None]:
    factor_names = PRODUCTS[name]
    for cells in results.grouped_by_columns(name, *factor_names):
        first, second = map(cells[0].get, factor_names)
        printed = cells[0].get(name)
        if first * second == printed:
            yield None
        else:
            computation = f"{first:g} × {second:g} = {first * second:g}, but {name} is {printed:g}"
            yield AuditDiagnostic(Severity.ERROR, tuple(cells), computation, explanations)


@check("Is a task as large as its batches?", "tables with batches and tasks")
def task_sizes(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every table that prints all three numbers."""
    tables: dict[object, dict[str, ResultCell]] = {}
    for cell in results.of(_TASK_SAMPLES, _TASK_BATCHES, _BATCH):
        tables.setdefault(cell.table, {})[cell.metric] = cell
    for cells in tables.values():
        if len(cells) < 3:
            continue
        samples, batches, batch = cells[_TASK_SAMPLES], cells[_TASK_BATCHES], cells[_BATCH]
        expected = batches.value * batch.value
        if expected == samples.value:
            yield None
        else:
            computation = f"{batches.text} × {batch.text} = {expected:g}, printed {samples.text}"
            yield AuditDiagnostic(Severity.ERROR, (samples, batches, batch), computation, _LAST_BATCH)


@check("Does the cloud machine have the GPUs that are stated?", "machines named with their devices")
def instances(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every machine and device that a source names together."""
    named = [cell for cell in results.cells if cell.get("instance") and cell.get("device_name")]
    for cells in grouped(named, lambda cell: tuple(map(cell.get, ("source", "instance", "device_name")))).values():
        machine_name, device = str(cells[0].get("instance")), str(cells[0].get("device_name"))
        machine = machines().get(machine_name)
        if machine is None:
            computation = f"{machine_name} is not in the list of machines, so its devices can't be checked"
            yield AuditDiagnostic(Severity.NOTE, tuple(cells), computation)
        elif machine.has(device):
            yield None
        else:
            count = cells[0].get("devices_per_node")
            printed = f"{int(count)} × {device}" if count else device
            matching = []
            for candidate in machines().values():
                if candidate.has(device) and count in (None, candidate.devices):
                    matching.append(candidate.name)
            computation = (
                f"{machine.name} has {machine.devices} × {machine.device} ({machine.source}), but {printed} is stated; "
                f"{', '.join(matching) or 'no machine of the list'} would have it"
            )
            yield AuditDiagnostic(Severity.ERROR, tuple(cells), computation, _OTHER_MACHINE)
