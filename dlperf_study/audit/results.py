"""A table of results as the checks see it: how its cells belong together."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, TypeVar

from dlperf_study.analysis.scaling import Point, point
from dlperf_study.analysis.statistics import median_interval
from dlperf_study.audit.result_cell import CONFIGURATION, EFFICIENCY, SIZES, SPEEDUP, THROUGHPUT, ResultCell

Item = TypeVar("Item")
Key = TypeVar("Key")


@dataclass(frozen=True)
class Rate:
    """A throughput on its curve, and whether repetitions gave its bounds."""

    cell: ResultCell
    point: Point
    repeated: bool


@dataclass(frozen=True)
class Results:
    """All cells of some tables. Runs are kept apart from what summarises them."""

    cells: tuple[ResultCell, ...]

    @cached_property
    def by_key(self) -> dict[str, ResultCell]:
        """Every cell by its key."""
        return {cell.key: cell for cell in self.cells}

    @cached_property
    def runs(self) -> dict[str, list[ResultCell]]:
        """The repetitions of a summary, by its key."""
        listed = (cell for cell in self.cells if cell.is_run and cell.get("runs_of"))
        return grouped(listed, lambda cell: str(cell.get("runs_of")))

    @cached_property
    def _summaries(self) -> tuple[ResultCell, ...]:
        return tuple(cell for cell in self.cells if not cell.is_run)

    @cached_property
    def _at(self) -> dict[tuple[Any, ...], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, *cell.point))

    @cached_property
    def _alike(self) -> dict[tuple[str, ...], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, *cell.configuration))

    @cached_property
    def _alongside(self) -> dict[tuple[str, str], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, cell.series))

    def alike(self, cell: ResultCell, metric: str) -> list[ResultCell]:
        """Return the cells of a metric, in any table, that were measured with the same configuration."""
        return self._alike.get((metric, *cell.configuration), [])

    def of(self, *metrics: str) -> list[ResultCell]:
        """Return the cells of some metrics, without single runs."""
        return [cell for cell in self._summaries if cell.metric in metrics]

    def beside(self, cell: ResultCell, metric: str) -> ResultCell | None:
        """Return the cell of another metric at the same point of the same series; None unless there is just one.

        Of several, it is the one that was estimated in the same way, as a median or a mean, or else that of its row.
        """
        found = self._at.get((metric, *cell.point), [])
        for name in ("estimator", "row"):
            if len(found) > 1:
                found = [other for other in found if other.get(name) == cell.get(name)]
        return found[0] if len(found) == 1 else None

    def pairs(self, metric: str, other: str) -> Iterator[tuple[ResultCell, ResultCell]]:
        """Yield each cell of a metric that has one of another metric beside it, with that."""
        for cell in self.of(metric):
            beside = self.beside(cell, other)
            if beside is not None:
                yield cell, beside

    def baseline_of(self, ratio: ResultCell) -> ResultCell | None:
        """Return the rate a ratio is relative to: the one the table names, else the one whose own ratio is 1.

        Of several such rates that are equal it is the first. An efficiency whose curve has no ratio of 1 is relative to
        its single device: that is what linear means.
        """
        if ratio.baseline:
            return self.by_key.get(ratio.baseline)
        units = self._units(ratio)
        if units:
            return _the_same([self.beside(unit, THROUGHPUT) for unit in units])
        alone = [cell for cell in self._alongside.get((THROUGHPUT, ratio.series), ()) if cell.world_size == 1]
        return _the_same(alone) if ratio.metric == EFFICIENCY else None

    def baseline_devices(self, ratio: ResultCell) -> int | None:
        """Return the devices of what a ratio is relative to, also where the table prints ratios and no rates."""
        base = self.baseline_of(ratio)
        if base is not None:
            return base.world_size
        found = {unit.world_size for unit in self._units(ratio) if not ratio.baseline}
        return found.pop() if len(found) == 1 else None

    def parting(self, ratio: ResultCell) -> list[str]:
        """Return the conditions in which a ratio differs from every ratio of 1 in its table, which so is on no curve
        with it; none where it is on a curve with one, or the table has none.
        """
        along = self._alongside.get((ratio.metric, ratio.series), [])
        units = [cell for cell in self.of(ratio.metric) if cell.value == 1 and cell.table == ratio.table]
        if not units or any(cell in along for cell in units if cell is not ratio):
            return []
        names = [name for name in (*CONFIGURATION, *ratio.own_conditions) if name not in SIZES]
        return [name for name in names if all(cell.get(name) != ratio.get(name) for cell in units)]

    def _units(self, ratio: ResultCell) -> list[ResultCell]:
        """Return the ratios of 1 on the curve of a ratio; of several, those at its fewest devices, if any is there."""
        along = self._alongside[ratio.metric, ratio.series]
        units = [cell for cell in along if cell.value == 1]
        fewest = min(cell.world_size or math.inf for cell in along)
        first = [cell for cell in units if cell.world_size == fewest]
        return first if first and ratio.metric in (SPEEDUP, EFFICIENCY) else units

    def curves(self) -> Iterator[list[Rate]]:
        """Yield the throughputs of each series, by number of devices; a series of one is left out.

        Of a series without throughputs these are its speedups, which rise and fall as they do.
        """
        rates = [self.rate(cell) for cell in self.of(THROUGHPUT, SPEEDUP) if self._on_a_curve(cell)]
        ordered = sorted(rates, key=lambda rate: (*_line(rate), rate.point.devices))
        for _, group in groupby(ordered, key=_line):
            curve = list(group)
            if len(curve) > 1:
                yield curve

    def steps(self) -> Iterator[tuple[Rate, Rate]]:
        """Yield each step of a curve to more devices: the rate on fewer, and that on more."""
        pairs = (pair for curve in self.curves() for pair in pairwise(curve))
        yield from ((fewer, more) for fewer, more in pairs if more.point.devices > fewer.point.devices)

    def _on_a_curve(self, cell: ResultCell) -> bool:
        """Say whether a rate is a point of a curve: a mean beside the median of the same runs tells nothing more."""
        if cell.metric == SPEEDUP and (THROUGHPUT, cell.series) in self._alongside:
            return False
        found = self._at[(cell.metric, *cell.point)]
        repeats = cell.estimator == "mean" and any(other.estimator == "median" for other in found)
        return (cell.world_size or 0) > 0 and cell.printed.positive and not repeats

    def run_lists(self) -> Iterator[list[ResultCell]]:
        """Yield the repetitions of each configuration, also of those whose summary stands in no table."""
        runs = (cell for cell in self.cells if cell.is_run)
        lists = grouped(runs, lambda run: (run.get("runs_of") or run.table, run.metric, *run.point))
        yield from (listed for listed in lists.values() if len(listed) > 1)

    def rate(self, cell: ResultCell) -> Rate:
        """Return a throughput with its interval: its own, that of its runs, or a margin where it has neither."""
        interval = median_interval([run.value for run in self.runs_of(cell)])
        ends = (interval.low, interval.high) if interval else (cell.get("low"), cell.get("high"))
        return Rate(cell, point(cell.world_size or 0, cell.value, *ends), ends[0] is not None)

    def stating(self, *names: str) -> Iterator[list[ResultCell]]:
        """Yield the cells of a table that print the same numbers in some columns; those that lack one are left out."""
        stating = (cell for cell in self.cells if None not in map(cell.get, names) and not {*names} & {*cell.inferred})
        yield from grouped(stating, lambda cell: (cell.table, *map(cell.get, names))).values()

    def runs_of(self, cell: ResultCell) -> list[ResultCell]:
        """Return the runs of a summary, also where they are listed for another summary of its source."""
        same = [other for other in self.alike(cell, cell.metric) if other.get("source") == cell.get("source")]
        return next((self.runs[one.key] for one in (cell, *same) if one.key in self.runs), [])


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return cells, or what was found of them, by what a key says of each, in their order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _the_same(rates: Sequence[ResultCell | None]) -> ResultCell | None:
    """Return the first of some rates that all print the same number at the same number of devices; else None."""
    known = [rate for rate in rates if rate is not None]
    alike = len({(rate.printed.exact, rate.world_size) for rate in known}) == 1 and len(known) == len(rates)
    return known[0] if alike else None


def _line(rate: Rate) -> tuple[str, str]:
    return rate.cell.series, rate.cell.estimator
