"""Implausible numbers: beyond a limit, wrong products, or copied rows."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from dlperf_study.audit import quantities
from dlperf_study.audit.checks import Agreeing, AuditDiagnostic, check, texts_phrase
from dlperf_study.audit.limits import machines, may_be_convolutional
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted
from dlperf_study.metrics.columns import PRODUCTS
from dlperf_study.metrics.utilisation import WINOGRAD, severity_above_peak

_POSITIVE = {*quantities.THROUGHPUTS, quantities.STEPS, quantities.STEP, quantities.TASK}
_POSITIVE |= {quantities.SPEEDUP, quantities.EFFICIENCY, quantities.RELATIVE}
#: The longest step of the published figures of this package takes 22 s.
LONGEST_STEP_SECONDS = 100
_TASK_SAMPLES, _TASK_BATCHES, _BATCH = "samples_per_task", "batches_per_task", "batch_per_device"
_ROUNDED_AWAY = ("it may be rounded, or stand for a missing number",)
_LONG_STEP = ("a step with gradient accumulation, or a step of a large model on a CPU, may take minutes",)
_PER_CENT = "it may be a percentage without its sign"
_OTHER_NODES = ("nodes may differ in their devices, or some devices may be unused",)
_OTHER_BATCH = (
    "a step may accumulate the gradients of several batches",
    "the model may be sharded over several devices that share its batch",
)
_LAST_BATCH = ("the last batch of a task may be smaller or larger",)
_OTHER_MACHINE = ("the name of the machine may be a typo",)
#: What rows of another model or device differ in.
_SUBJECT = ("model", "section", "device_name", "parameters")
#: Numbers of at least so many units of their last digit are rarely the same by chance; so many are no chance.
_ENOUGH_UNITS, _ENOUGH_NUMBERS = 100, 2
#: A throughput of a job with so many units is the same on more devices only if it was copied.
_MANY_UNITS = 10_000
_CERTAIN_CELLS = 6
_REPEATED = ("the rows may show one measurement under two names of its model or devices",)


@check("Are throughputs, ratios and times above 0?", "throughputs, ratios and times", compares=False)
def above_zero(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Find numbers that are not above zero, also in single runs."""
    for cell in results.cells:
        if cell.metric not in _POSITIVE:
            continue
        # A throughput of 0 is less than one unit if another throughput of its row is above 0.
        throughputs = filter(None, (results.at_same_point(cell, metric) for metric in quantities.THROUGHPUTS))
        is_rounded_away = (
            cell.value == 0 and cell.printed.step >= 1 and any(throughput.value > 0 for throughput in throughputs)
        )
        if cell.value > 0 or is_rounded_away:
            yield None
        else:
            computation = f"{cell.metric} is {cell.text}; it must be above 0"
            yield AuditDiagnostic(Severity.ERROR, (cell,), computation, _ROUNDED_AWAY)


@check("Can a step take that long?", "times of a step", compares=False)
def durations(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Find very long step times whose unit is not printed."""
    for step in results.select(quantities.STEP):
        if step.value <= LONGEST_STEP_SECONDS or step.get(quantities.STEP_UNIT):
            yield None
        else:
            computation = (
                f"{quantities.STEP} is {step.text}, which is {step.value / 60:.3g} minutes. It looks like milliseconds"
            )
            yield AuditDiagnostic(Severity.WARNING, (step,), computation, _LONG_STEP)


@check("Is every share at most 1?", "shares of a peak and of the time", compares=False)
def shares_up_to_one(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Find shares above 1; `utilisation` examines those with FLOPs per sample."""
    for share in results.select(quantities.MFU, quantities.HFU, quantities.COMMUNICATION):
        if share.get("flops_per_sample"):
            continue
        computation = f"{share.metric} is {share.text}, but a share is at most 1"
        is_impossible = severity_above_peak(share.value, may_be_convolutional(share)) is Severity.ERROR
        if share.printed.bounds()[0] <= 1:
            yield None
        elif share.metric in (quantities.MFU, quantities.HFU) and not is_impossible:
            yield AuditDiagnostic(Severity.WARNING, (share,), computation, (WINOGRAD, _PER_CENT))
        else:
            yield AuditDiagnostic(Severity.ERROR, (share,), computation, (_PER_CENT,))


@check("Are there as many devices as the nodes hold?", "devices printed with their factors", compares=False)
def world_size(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare the devices with nodes × devices per node."""
    return _compare_products(results, "world_size", _OTHER_NODES)


@check("Is a global batch the batch per device × devices?", "global batches printed with their factors", compares=False)
def global_batch(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare the global batch with its factors."""
    return _compare_products(results, "global_batch", _OTHER_BATCH)


def _compare_products(results: Results, name: str, explanations: tuple[str, ...]) -> Iterator[AuditDiagnostic | None]:
    names = (*PRODUCTS[name], name)
    # An inferred number always agrees with its factors.
    printed_cells = [cell for cell in results.cells if None not in map(cell.get, names)]
    printed_cells = [cell for cell in printed_cells if not {*names} & {*cell.inferred}]
    for cells in grouped(printed_cells, lambda cell: (cell.table, *map(cell.get, names))).values():
        first, second, printed = map(cells[0].get, names)
        if first * second == printed:
            yield None
        else:
            computation = f"{first:g} × {second:g} = {first * second:g}, but {name} is {printed:g}"
            yield AuditDiagnostic(Severity.ERROR, tuple(cells), computation, explanations)


@check("Is a task as large as its batches?", "tables with batches and tasks")
def task_sizes(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Yield a result for every table that prints all three numbers."""
    tables: dict[object, dict[str, ResultCell]] = {}
    for cell in results.select(_TASK_SAMPLES, _TASK_BATCHES, _BATCH):
        tables.setdefault(cell.table, {})[cell.metric] = cell
    for cells in tables.values():
        if len(cells) < 3:
            continue
        samples, batches, batch = cells[_TASK_SAMPLES], cells[_TASK_BATCHES], cells[_BATCH]
        expected = batches.value * batch.value
        if expected == samples.value:
            yield samples, batches, batch
        else:
            computation = f"{batches.text} × {batch.text} = {expected:g}, printed {samples.text}"
            yield AuditDiagnostic(Severity.ERROR, (samples, batches, batch), computation, _LAST_BATCH)


@check("Does the cloud machine have the GPUs that are stated?", "machines named with their devices", compares=False)
def instances(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare the device of each cloud machine with the provider's."""
    named = []
    for cell in results.cells:
        if cell.get("instance") and cell.get("device_name"):
            named.append(cell)
    for cells in grouped(named, lambda cell: tuple(map(cell.get, ("source", "instance", "device_name")))).values():
        machine_name, device = str(cells[0].get("instance")), str(cells[0].get("device_name"))
        machine = machines().get(machine_name)
        if machine is None:
            computation = f"{machine_name} is not in the list of machines: its devices are not checked"
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
                f"known machines with it: {', '.join(matching) or 'none'}"
            )
            yield AuditDiagnostic(Severity.ERROR, tuple(cells), computation, _OTHER_MACHINE)


@check("Do other models and devices have other results?", "models and devices with results", compares=False)
def copied_rows(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Find models, devices and steps of a curve with the same numbers."""
    measured = []
    for cell in results.select(*quantities.THROUGHPUTS, quantities.DEVICE_FLOPS, quantities.STEP):
        if cell.printed.units >= _ENOUGH_UNITS:
            measured.append(cell)
    for cells in grouped(measured, lambda cell: cell.get("source")).values():
        subjects = grouped(cells, lambda cell: tuple(map(cell.get, _SUBJECT)))
        if len(subjects) > 1:
            yield from _compare_subjects(list(subjects.values()))
    of_jobs = []
    for cell in results.select(quantities.THROUGHPUT, quantities.TOKENS):
        if cell.printed.units >= _MANY_UNITS and cell.world_size:
            of_jobs.append(cell)
    for cells in grouped(of_jobs, lambda cell: (cell.table, cell.metric)).values():
        if len({cell.world_size for cell in cells}) > 1:
            for same in grouped(cells, lambda cell: cell.printed.exact).values():
                sizes = list({cell.world_size: cell for cell in same}.values())
                if len(sizes) > 1:
                    yield _repetition(sizes[:2])
                else:
                    yield None


def _compare_subjects(subjects: Sequence[list[ResultCell]]) -> Iterator[AuditDiagnostic | None]:
    """Yield a diagnostic for every two subjects with the same numbers."""
    rows: dict[object, list[tuple[int, ResultCell]]] = defaultdict(list)
    for index, cells in enumerate(subjects):
        for cell in cells:
            rows[cell.metric, cell.printed.exact].append((index, cell))
    shared: dict[tuple[int, int], list[ResultCell]] = defaultdict(list)
    for same in rows.values():
        for (first, cell), (second, copy) in combinations(same, 2):
            if first != second:
                shared[first, second] += [cell, copy]
    copied = set()
    for (first, second), cells in shared.items():
        if _may_be_one_subject(subjects[first][0], subjects[second][0]):
            continue
        smaller = min(subjects[first], subjects[second], key=len)
        repeated = {cell.printed.exact for cell in cells}
        if len(repeated) >= _ENOUGH_NUMBERS and 2 * len(repeated) >= len({cell.printed.exact for cell in smaller}):
            copied |= {first, second}
            yield _repetition(list(dict.fromkeys(cells)))
    yield from [None] * (len(subjects) - len(copied))


def _may_be_one_subject(cell: ResultCell, other: ResultCell) -> bool:
    """Return whether two tables agree in what both say of a subject."""
    if cell.table == other.table:
        return False
    for name in _SUBJECT:
        values = {cell.get(name), other.get(name)} - {None}
        if len(values) > 1:
            return False
    return True


def _repetition(cells: Sequence[ResultCell]) -> AuditDiagnostic:
    """Return a diagnostic for pairs of equal numbers; three are an error."""
    names = []
    for cell in cells[:2]:
        subject = [str(cell.get(name)) for name in _SUBJECT[:-1] if cell.get(name)]
        if cell.world_size:
            subject.append(counted(cell.world_size, "device"))
        names.append(" ".join(subject))
    computation = f"{texts_phrase(cells[::2])}: the same for {names[0]} and for {names[1]}"
    severity = Severity.ERROR if len(cells) >= _CERTAIN_CELLS else Severity.WARNING
    return AuditDiagnostic(severity, tuple(cells), computation, _REPEATED)
