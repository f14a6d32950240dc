"""A table of results, and how its cells are related."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

from dlperf_study.audit import quantities
from dlperf_study.audit.result_cell import ResultCell, Throughput, curve_step, estimate_throughput
from dlperf_study.metrics.scaling import unexplained_steps

_CURVES = (quantities.THROUGHPUT, quantities.TOKENS)

Item = TypeVar("Item")
Key = TypeVar("Key")


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
        """The cells by metric and point, also with their estimator, and with their row."""
        cells: dict[tuple[Any, ...], list[ResultCell]] = {}
        for cell in self._summaries:
            point, estimator = (cell.metric, *cell.point), cell.get("estimator")
            for key in (point, (*point, estimator), (*point, estimator, cell.get("row"))):
                cells.setdefault(key, []).append(cell)
        return cells

    @cached_property
    def _by_configuration(self) -> dict[tuple[str, ...], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, *cell.configuration))

    @cached_property
    def _by_series(self) -> dict[tuple[str, str], list[ResultCell]]:
        return grouped(self._summaries, lambda cell: (cell.metric, cell.series))

    def select(self, *metrics: str) -> list[ResultCell]:
        """Return the summaries of some metrics."""
        printed = [metric for metric in metrics if metric in self._by_metric]
        if len(printed) < 2:
            return [cell for metric in printed for cell in self._by_metric[metric]]
        return [cell for cell in self._summaries if cell.metric in metrics]

    @cached_property
    def _by_metric(self) -> dict[str, list[ResultCell]]:
        return grouped(self._summaries, lambda cell: cell.metric)

    def same_configuration(self, cell: ResultCell, metric: str) -> list[ResultCell]:
        """Return the cells of a metric with the configuration of ``cell``."""
        return self._by_configuration.get((metric, *cell.configuration), [])

    def at_same_point(self, cell: ResultCell, metric: str) -> ResultCell | None:
        """Return the one cell of another metric at the same point.

        Of several cells, the one with the same estimator, or else in the same row; None if ambiguous.
        """
        key = (metric, *cell.point)
        matches = self._by_point.get(key, [])
        if len(matches) > 1:
            key = (*key, cell.get("estimator"))
            matches = self._by_point.get(key, [])
        if len(matches) > 1:
            matches = self._by_point.get((*key, cell.get("row")), [])
        return matches[0] if len(matches) == 1 else None

    def pairs(self, metric: str, second_metric: str) -> Iterator[tuple[ResultCell, ResultCell]]:
        """Yield cells of one metric with the second metric's cell."""
        for cell in self.select(metric):
            second = self.at_same_point(cell, second_metric)
            if second is not None:
                yield cell, second

    def find_baseline(self, ratio: ResultCell) -> ResultCell | None:
        """Return the throughput that a ratio is relative to.

        It is the named throughput, else the throughput whose own ratio is 1; the first of several if they are equal. An
        efficiency without a ratio of 1 is relative to the single device of its curve.
        """
        if ratio.baseline:
            return self.by_key.get(ratio.baseline)
        curve = (ratio.metric, ratio.series)
        if self._unit_ratios[curve]:
            return self._unit_throughputs[curve]
        if elsewhere := self._unit_ratios_elsewhere(ratio):
            return _common_throughput([self.throughput_at(unit) for unit in elsewhere])
        if ratio.metric != quantities.EFFICIENCY:
            return None
        for metric in quantities.THROUGHPUTS:
            if throughputs := self._by_series.get((metric, ratio.series)):
                return _common_throughput([throughput for throughput in throughputs if throughput.world_size == 1])
        return None

    def find_baseline_time(self, ratio: ResultCell, metric: str) -> ResultCell | None:
        """Return the time of the ratio of 1 on the curve of a speedup."""
        units = self._unit_ratios[ratio.metric, ratio.series]
        return _common_throughput([self.at_same_point(unit, metric) for unit in units])

    def throughput_at(self, cell: ResultCell) -> ResultCell | None:
        """Return the first throughput that is printed at the point."""
        for metric in quantities.THROUGHPUTS:
            if throughput := self.at_same_point(cell, metric):
                return throughput
        return None

    def baseline_devices(self, ratio: ResultCell) -> int | None:
        """Return the devices of a ratio's baseline, also without throughputs."""
        baseline = self.find_baseline(ratio)
        if baseline is not None:
            return baseline.world_size
        if ratio.baseline:
            return None
        sizes = {unit.world_size for unit in self._unit_ratios[ratio.metric, ratio.series]}
        if len(sizes) != 1:
            return None
        return sizes.pop()

    def _unit_ratios_elsewhere(self, ratio: ResultCell) -> list[ResultCell]:
        """Return ratios of 1 on a curve that differs in one condition.

        Empty if there are several such curves: speedups in half precision may be relative to full precision.
        """
        units = []
        for unit in self._units_of_table.get((ratio.metric, ratio.table), []):
            if sum(unit.get(name) != ratio.get(name) for name in _curve_conditions(ratio)) == 1:
                units.append(unit)
        fewest = min((unit.world_size or math.inf for unit in units), default=math.inf)
        at_fewest = [unit for unit in units if unit.world_size in (fewest, None)]
        if len({unit.series for unit in at_fewest}) == 1:
            return at_fewest
        return []

    @cached_property
    def _units_of_table(self) -> dict[tuple[Any, ...], list[ResultCell]]:
        return grouped(_units(self._summaries), lambda cell: (cell.metric, cell.table))

    def separating_conditions(self, ratio: ResultCell) -> list[str]:
        """Return how a ratio differs from every ratio of 1."""
        unit_ratios = self._units_of_table.get((ratio.metric, ratio.table), [])
        if not unit_ratios or any(cell.series == ratio.series for cell in unit_ratios if cell is not ratio):
            return []
        names = _curve_conditions(ratio)
        for unit in unit_ratios:
            names = [name for name in names if unit.get(name) != ratio.get(name)]
        return names

    @cached_property
    def _unit_ratios(self) -> dict[tuple[str, str], list[ResultCell]]:
        """The ratios of 1 at the fewest devices, by metric and series."""
        unit_ratios = {}
        for (metric, series), curve in self._by_series.items():
            units = _units(curve)
            fewest = min(cell.world_size or math.inf for cell in curve)
            at_fewest = [unit for unit in units if unit.world_size == fewest]
            if at_fewest and metric in (quantities.SPEEDUP, quantities.EFFICIENCY):
                units = at_fewest
            unit_ratios[metric, series] = units
        return unit_ratios

    @cached_property
    def _unit_throughputs(self) -> dict[tuple[str, str], ResultCell | None]:
        """The common throughput of the ratios of 1, by metric and series."""
        throughputs = {}
        for curve, units in self._unit_ratios.items():
            throughputs[curve] = _common_throughput([self.throughput_at(unit) for unit in units])
        return throughputs

    @cached_property
    def _finest_steps(self) -> dict[tuple[Any, ...], Fraction]:
        tables = grouped(self._summaries, lambda cell: (cell.metric, cell.table))
        return {key: min(cell.printed.step for cell in cells) for key, cells in tables.items()}

    def finest_step(self, ratio: ResultCell) -> Fraction:
        """Return the last digit's unit of the most precise ratio."""
        return self._finest_steps[ratio.metric, ratio.table]

    @cached_property
    def curves(self) -> list[list[Throughput]]:
        """Each series with at least two points, by devices.

        Tokens are a curve of their own. A series without throughputs is represented by its speedups; runs with a mean
        and a median by their median.
        """
        throughputs = []
        for cell in self.select(*_CURVES, quantities.SPEEDUP):
            if cell.metric == quantities.SPEEDUP:
                has_throughputs = any((throughput, cell.series) in self._by_series for throughput in _CURVES)
                # Without a speedup of 1 they may be relative to something else at each point.
                if has_throughputs or not self._unit_ratios[cell.metric, cell.series]:
                    continue
            if cell.estimator == "mean" and (cell.metric, *cell.point, "median") in self._by_point:
                continue
            if cell.world_size and cell.world_size > 0 and cell.printed.is_positive:
                throughputs.append(self.throughput(cell))
        throughputs.sort(key=lambda throughput: throughput.point.devices)
        curves = grouped(
            throughputs, lambda throughput: (throughput.cell.series, throughput.cell.estimator, throughput.cell.metric)
        )
        return [curve for _, curve in sorted(curves.items()) if len(curve) > 1]

    def steps(self) -> Iterator[tuple[Throughput, Throughput]]:
        """Yield the throughputs before and after each step of a curve."""
        for curve in self.curves:
            for fewer, more in pairwise(curve):
                if more.point.devices > fewer.point.devices:
                    yield fewer, more

    @cached_property
    def unexplained(self) -> set[tuple[str, str]]:
        """The steps whose super-linear rise or fall is significant.

        All steps of one source are tested together; a throughput without runs or interval supports no statement.
        """
        unexplained = set()
        for steps in grouped(self.steps(), lambda step: str(step[0].cell.get("source"))).values():
            decisions = unexplained_steps([curve_step(*step) for step in steps])
            for (fewer, more), is_unexplained in zip(steps, decisions, strict=True):
                if is_unexplained:
                    unexplained.add((fewer.cell.key, more.cell.key))
        return unexplained

    def throughput(self, cell: ResultCell) -> Throughput:
        """Return a throughput, estimated from its runs or interval."""
        return estimate_throughput(cell, self.list_runs(cell))

    def list_runs(self, cell: ResultCell) -> list[ResultCell]:
        """Return the runs of a summary, also of an equal summary."""
        if not self.runs:
            return []
        own_runs = self.runs.get(cell.key)
        key = (cell.get("source"), cell.metric, *cell.configuration)
        return own_runs or self._same_configuration_runs.get(key, [])

    @cached_property
    def _same_configuration_runs(self) -> dict[tuple[Any, ...], list[ResultCell]]:
        """The first listed runs of each configuration."""
        runs: dict[tuple[Any, ...], list[ResultCell]] = {}
        for summary in self._summaries:
            if summary.key in self.runs:
                runs.setdefault((summary.get("source"), summary.metric, *summary.configuration), self.runs[summary.key])
        return runs


def _units(cells: Iterable[ResultCell]) -> list[ResultCell]:
    return [cell for cell in cells if cell.value == 1]


def _curve_conditions(ratio: ResultCell) -> list[str]:
    """Return the conditions that tell curves apart: all but the sizes."""
    return [name for name in (*quantities.CONFIGURATION, *ratio.extra_conditions) if name not in quantities.SIZES]


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by their key, in their order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def device_share(ratio: ResultCell, baseline: ResultCell) -> Fraction:
    """Return the factor of devices in a ratio.

    It is baseline devices / devices for an efficiency and 1 for other ratios; for throughputs per device the reverse.
    """
    share = Fraction(baseline.world_size or 1, ratio.world_size or 1)
    is_of_device = baseline.metric in quantities.THROUGHPUTS_OF_DEVICE
    if is_of_device and ratio.metric == quantities.SPEEDUP:
        return 1 / share
    if not is_of_device and ratio.metric == quantities.EFFICIENCY:
        return share
    return Fraction(1)


def recomputed(ratio: ResultCell, throughput: ResultCell, baseline: ResultCell) -> Fraction:
    """Return the ratio of two throughputs as printed."""
    return throughput.printed.exact / baseline.printed.exact * device_share(ratio, baseline)


def _common_throughput(throughputs: Sequence[ResultCell | None]) -> ResultCell | None:
    """Return the first throughput if all throughputs are equal, else None."""
    if not throughputs or None in throughputs:
        return None
    if len({(throughput.printed.exact, throughput.world_size) for throughput in throughputs if throughput}) > 1:
        return None
    return throughputs[0]
