"""A table of results as the checks see it: how its cells are related to each other."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, TypeVar

from dlperf_study.analysis.scaling import CurvePoint, point
from dlperf_study.analysis.statistics import median_interval
from dlperf_study.audit.result_cell import CONFIGURATION, EFFICIENCY, SIZES, SPEEDUP, THROUGHPUT, ResultCell

Item = TypeVar("Item")
Key = TypeVar("Key")


@dataclass(frozen=True)
class Rate:
    """A throughput as a point of a scaling curve; ``has_interval``: its bounds are an interval, no assumed margin."""

    cell: ResultCell
    point: CurvePoint
    has_interval: bool


@dataclass(frozen=True)
class Results:
    """All cells of some tables; single runs are separate from summaries."""

    cells: tuple[ResultCell, ...]

    @cached_property
    def by_key(self) -> dict[str, ResultCell]:
        """Every cell by its key."""
        return {cell.key: cell for cell in self.cells}

    @cached_property
    def runs(self) -> dict[str, list[ResultCell]]:
        """The repetitions of each summary, by its key."""
        runs = (cell for cell in self.cells if cell.is_run and cell.get("runs_of"))
        return grouped(runs, lambda cell: str(cell.get("runs_of")))

    @cached_property
    def _summaries(self) -> tuple[ResultCell, ...]:
        return tuple(cell for cell in self.cells if not cell.is_run)

    @cached_property
    def _by_point(self) -> dict[tuple[Any, ...], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, *cell.point))

    @cached_property
    def _by_configuration(self) -> dict[tuple[str, ...], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, *cell.configuration))

    @cached_property
    def _by_series(self) -> dict[tuple[str, str], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, cell.series))

    def of(self, *metrics: str) -> list[ResultCell]:
        """Return the summaries of some metrics."""
        return [cell for cell in self._summaries if cell.metric in metrics]

    def same_configuration(self, cell: ResultCell, metric: str) -> list[ResultCell]:
        """Return the cells of a metric, in any table, with the configuration of ``cell``."""
        return self._by_configuration.get((metric, *cell.configuration), [])

    def at_same_point(self, cell: ResultCell, metric: str) -> ResultCell | None:
        """Return the cell of another metric at the same point of the same series; None unless exactly one matches.

        Of several cells, return the one with the same estimator, or else the one in the same row.
        """
        matches = self._by_point.get((metric, *cell.point), [])
        for name in ("estimator", "row"):
            if len(matches) > 1:
                matches = [match for match in matches if match.get(name) == cell.get(name)]
        return matches[0] if len(matches) == 1 else None

    def pairs(self, metric: str, second_metric: str) -> Iterator[tuple[ResultCell, ResultCell]]:
        """Yield each cell of a metric that has a cell of a second metric at the same point, with that cell."""
        for cell in self.of(metric):
            second = self.at_same_point(cell, second_metric)
            if second is not None:
                yield cell, second

    def baseline_of(self, ratio: ResultCell) -> ResultCell | None:
        """Return the rate a ratio is relative to: the one that the table names, else the one whose own ratio is 1.

        Return the first of several such rates if they are equal. An efficiency without a ratio of 1 on its curve is
        relative to the single device of the curve: that is what linear means.
        """
        if ratio.baseline:
            return self.by_key.get(ratio.baseline)
        unit_ratios = self._unit_ratios(ratio)
        if unit_ratios:
            return _common_rate([self.at_same_point(unit, THROUGHPUT) for unit in unit_ratios])
        if ratio.metric != EFFICIENCY:
            return None
        rates = self._by_series.get((THROUGHPUT, ratio.series), [])
        return _common_rate([rate for rate in rates if rate.world_size == 1])

    def baseline_devices(self, ratio: ResultCell) -> int | None:
        """Return the number of devices a ratio is relative to, also where the table prints no rates."""
        baseline = self.baseline_of(ratio)
        if baseline is not None:
            return baseline.world_size
        if ratio.baseline:
            return None
        sizes = {unit.world_size for unit in self._unit_ratios(ratio)}
        return sizes.pop() if len(sizes) == 1 else None

    def separating_conditions(self, ratio: ResultCell) -> list[str]:
        """Return the conditions in which a ratio differs from every ratio of 1 in its table.

        Empty if its curve has a ratio of 1, or the table has none.
        """
        curve = self._by_series.get((ratio.metric, ratio.series), [])
        unit_ratios = [cell for cell in self.of(ratio.metric) if cell.value == 1 and cell.table == ratio.table]
        if not unit_ratios or any(cell in curve for cell in unit_ratios if cell is not ratio):
            return []
        separating = []
        for name in (*CONFIGURATION, *ratio.extra_conditions):
            levels = {cell.get(name) for cell in unit_ratios}
            if name not in SIZES and ratio.get(name) not in levels:
                separating.append(name)
        return separating

    def _unit_ratios(self, ratio: ResultCell) -> list[ResultCell]:
        """Return the ratios of 1 on the curve of a ratio; of several, those at the fewest devices of the curve."""
        curve = self._by_series[ratio.metric, ratio.series]
        unit_ratios = [cell for cell in curve if cell.value == 1]
        fewest = min(cell.world_size or math.inf for cell in curve)
        at_fewest = [cell for cell in unit_ratios if cell.world_size == fewest]
        return at_fewest if at_fewest and ratio.metric in (SPEEDUP, EFFICIENCY) else unit_ratios

    def finest_step(self, ratio: ResultCell) -> Fraction:
        """Return one unit of the last digit of the ratios of a table with most digits."""
        return min(cell.printed.step for cell in self.of(ratio.metric) if cell.table == ratio.table)

    def curves(self) -> Iterator[list[Rate]]:
        """Yield the throughputs of each series with at least two points, by number of devices.

        A series without throughputs is represented by its speedups, which rise and fall in the same way; runs with a
        mean and a median by their median.
        """
        rates = []
        for cell in self.of(THROUGHPUT, SPEEDUP):
            has_rates = cell.metric == SPEEDUP and (THROUGHPUT, cell.series) in self._by_series
            estimators = {match.estimator for match in self._by_point[cell.metric, *cell.point]}
            has_median = cell.estimator == "mean" and "median" in estimators
            if cell.world_size and cell.world_size > 0 and cell.printed.is_positive and not (has_rates or has_median):
                rates.append(self.rate(cell))
        rates.sort(key=lambda rate: (rate.cell.series, rate.cell.estimator, rate.point.devices))
        for _, group in groupby(rates, key=lambda rate: (rate.cell.series, rate.cell.estimator)):
            curve = list(group)
            if len(curve) > 1:
                yield curve

    def steps(self) -> Iterator[tuple[Rate, Rate]]:
        """Yield each step of a curve to more devices: the rate before it and the rate after it."""
        for curve in self.curves():
            for fewer, more in pairwise(curve):
                if more.point.devices > fewer.point.devices:
                    yield fewer, more

    def rate(self, cell: ResultCell) -> Rate:
        """Return a throughput with its interval: that of its runs, else the printed one, else an assumed margin."""
        interval = median_interval([run.value for run in self.runs_of(cell)])
        low, high = (interval.low, interval.high) if interval else (cell.get("low"), cell.get("high"))
        return Rate(cell, point(cell.world_size or 0, cell.value, low, high), low is not None)

    def runs_of(self, cell: ResultCell) -> list[ResultCell]:
        """Return the runs of a summary, also if they are listed for another summary of the same source."""
        for summary in (cell, *self.same_configuration(cell, cell.metric)):
            if summary.get("source") == cell.get("source") and summary.key in self.runs:
                return self.runs[summary.key]
        return []

    def run_lists(self) -> Iterator[list[ResultCell]]:
        """Yield the repetitions of each configuration, also of those whose summary is in no table."""
        runs = (cell for cell in self.cells if cell.is_run)
        lists = grouped(runs, lambda run: (run.get("runs_of") or run.table, run.metric, *run.point))
        for run_list in lists.values():
            if len(run_list) > 1:
                yield run_list

    def with_columns(self, *names: str) -> Iterator[list[ResultCell]]:
        """Yield the cells of each table that print the same numbers in some columns, if the table prints them all."""
        cells = (cell for cell in self.cells if None not in map(cell.get, names) and not {*names} & {*cell.inferred})
        yield from grouped(cells, lambda cell: (cell.table, *map(cell.get, names))).values()


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by their key, in their order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def device_share(ratio: ResultCell, baseline: ResultCell) -> Fraction:
    """Return baseline devices / devices for an efficiency, 1 for any other ratio."""
    if ratio.metric != EFFICIENCY:
        return Fraction(1)
    return Fraction(baseline.world_size or 1, ratio.world_size or 1)


def recomputed(ratio: ResultCell, rate: ResultCell, baseline: ResultCell) -> Fraction:
    """Return what a ratio should be, from its two rates exactly as printed."""
    return rate.printed.exact / baseline.printed.exact * device_share(ratio, baseline)


def _common_rate(rates: Sequence[ResultCell | None]) -> ResultCell | None:
    """Return the first rate if all print the same number for the same number of devices; else None."""
    if not rates or None in rates:
        return None
    distinct = {(rate.printed.exact, rate.world_size) for rate in rates if rate is not None}
    return rates[0] if len(distinct) == 1 else None
