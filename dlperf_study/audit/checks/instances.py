"""Cloud machines whose GPUs are others than those a table says it was measured on."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import Instance, instances
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

_WHY = ("the name of the machine may be a slip of the pen for one that has these GPUs",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every machine and device that a source names together."""
    named = (cell for cell in results.cells if cell.get("instance") and cell.get("device_name"))
    for cells in map(tuple, grouped(named, _machine).values()):
        known = instances().get(str(cells[0].get("instance")))
        yield _examined(cells, known) if known else _unknown(cells)


def _examined(cells: tuple[ResultCell, ...], known: Instance) -> AuditDiagnostic | None:
    stated = str(cells[0].get("device_name"))
    if known.device.lower() in stated.lower():
        return None
    count = cells[0].get("devices_per_node")
    named = f"{int(count)} × {stated}" if count else stated
    said = f"{known.name} has {known.devices} × {known.device} ({known.source}), but {named} is stated"
    fitting = ", ".join(one.name for one in instances().values() if _has(one, stated, count))
    return AuditDiagnostic(Severity.ERROR, cells, f"{said}; {fitting or 'no machine of the list'} would have it", _WHY)


def _has(machine: Instance, stated: str, count: int | None) -> bool:
    return machine.device.lower() in stated.lower() and (count is None or machine.devices == count)


def _unknown(cells: tuple[ResultCell, ...]) -> AuditDiagnostic:
    said = f"{cells[0].get('instance')} is not in the list of machines, so its devices can't be checked"
    return AuditDiagnostic(Severity.NOTE, cells, said)


def _machine(cell: ResultCell) -> tuple[str, ...]:
    return tuple(str(cell.get(name)) for name in ("source", "instance", "device_name"))


CHECK = Check("Has the cloud machine the GPUs that are stated?", "machines named with their devices", examine)
