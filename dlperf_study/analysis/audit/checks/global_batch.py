"""The samples of a step: batch per device × devices."""

from collections.abc import Iterator

from dlperf_study.analysis.audit.finding import Check, Finding
from dlperf_study.analysis.audit.results import Cell, Results
from dlperf_study.logs.complaint import Severity

FACTORS = ("batch_per_device", "world_size")
_WHY = (
    "a step may gather the gradients of several batches",
    "several devices may hold one copy of the model, and share its batch",
)


def examine(results: Results) -> Iterator[Finding | None]:
    """Yield a result for every global batch of a table that stands beside both of its factors."""
    yield from (_examined(cells) for cells in results.stating("global_batch", *FACTORS))


def _examined(cells: list[Cell]) -> Finding | None:
    batch, devices = (cells[0].get(name) for name in FACTORS)
    stated = cells[0].get("global_batch")
    if batch * devices == stated:
        return None
    said = f"{batch:g} × {devices:g} = {batch * devices:g}, but global_batch is {stated:g}"
    return Finding(Severity.ERROR, tuple(cells), said, _WHY)


CHECK = Check("Is a global batch that of all devices?", "global batches beside their parts", examine)
