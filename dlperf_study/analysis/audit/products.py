"""A number of a table that stands beside the two whose product it is."""

from collections.abc import Iterator

from dlperf_study.analysis.audit.cell import Cell
from dlperf_study.analysis.audit.finding import Finding
from dlperf_study.analysis.audit.results import Results
from dlperf_study.columns import PRODUCTS
from dlperf_study.logs.complaint import Severity


def product(results: Results, name: str, why: tuple[str, ...]) -> Iterator[Finding | None]:
    """Yield a result for every number of a table in column ``name`` that stands beside both of its factors."""
    factors = PRODUCTS[name]
    yield from (_examined(cells, name, factors, why) for cells in results.stating(name, *factors))


def _examined(cells: list[Cell], name: str, factors: tuple[str, str], why: tuple[str, ...]) -> Finding | None:
    one, other, stated = (cells[0].get(column) for column in (*factors, name))
    if one * other == stated:
        return None
    said = f"{one:g} × {other:g} = {one * other:g}, but {name} is {stated:g}"
    return Finding(Severity.ERROR, tuple(cells), said, why)
