"""The number of devices: nodes × devices of a node."""

from collections.abc import Iterator

from dlperf_study.analysis.audit.finding import Check, Finding
from dlperf_study.analysis.audit.results import Cell, Results
from dlperf_study.logs.complaint import Severity

FACTORS = ("nodes", "devices_per_node")
_WHY = ("not every node may have as many devices, or not all of them be used",)


def examine(results: Results) -> Iterator[Finding | None]:
    """Yield a result for every number of devices of a table that stands beside both of its factors."""
    yield from (_examined(cells) for cells in results.stating("world_size", *FACTORS))


def _examined(cells: list[Cell]) -> Finding | None:
    nodes, devices = (cells[0].get(name) for name in FACTORS)
    stated = cells[0].get("world_size")
    if nodes * devices == stated:
        return None
    said = f"{nodes:g} × {devices:g} = {nodes * devices:g}, but world_size is {stated:g}"
    return Finding(Severity.ERROR, tuple(cells), said, _WHY)


CHECK = Check("Are there as many devices as the nodes hold?", "numbers of devices beside their nodes", examine)
