"""Cloud machines whose GPUs are not those that a table names."""

from collections.abc import Iterator

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import instances
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = ("the name of the machine may be a slip of the pen for one that has these GPUs",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every machine and device that a source names together."""
    with_machine = [cell for cell in results.cells if cell.get("instance") and cell.get("device_name")]
    groups = grouped(with_machine, lambda cell: tuple(map(cell.get, ("source", "instance", "device_name"))))
    for cells in groups.values():
        machine_name, device = str(cells[0].get("instance")), str(cells[0].get("device_name"))
        machine = instances().get(machine_name)
        if machine is None:
            computation = f"{machine_name} is not in the list of machines, so its devices can't be checked"
            yield AuditDiagnostic(Severity.NOTE, tuple(cells), computation)
        elif machine.has(device):
            yield None
        else:
            count = cells[0].get("devices_per_node")
            printed = f"{int(count)} × {device}" if count else device
            matching = []
            for candidate in instances().values():
                if candidate.has(device) and count in (None, candidate.devices):
                    matching.append(candidate.name)
            computation = (
                f"{machine.name} has {machine.devices} × {machine.device} ({machine.source}), but {printed} is stated; "
                f"{', '.join(matching) or 'no machine of the list'} would have it"
            )
            yield AuditDiagnostic(Severity.ERROR, tuple(cells), computation, _EXPLANATIONS)


CHECK = Check("Does the cloud machine have the GPUs that are stated?", "machines named with their devices", examine)
