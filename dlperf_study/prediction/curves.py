"""Scaling curves over nodes, or over the devices of one node.

A curve is made from the configurations of a study, or from the points of a published series.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

import pandas as pd

from dlperf_study.audit.published import load, read_source
from dlperf_study.core.wording import value_text
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import column_named
from dlperf_study.metrics.parameters import varying
from dlperf_study.metrics.scaling import curve_numbers, series_factors
from dlperf_study.metrics.statistics import Estimate

WEAK, STRONG = "weak", "strong"
_BETWEEN_VALUES = " · "
_OF_POINT = ("nodes", "devices_per_node", "world_size", "parameter_servers", "device")


class Unit(StrEnum):
    """The unit of a curve: nodes, devices of one node, or workers."""

    NODE = "node"
    DEVICE = "device"
    WORKER = "worker"


@dataclass(frozen=True)
class CurvePoint:
    """One measured size: units, devices and logarithm of its throughput."""

    units: int
    devices: int
    log_throughput: Estimate

    @property
    def throughput(self) -> float:
        """The throughput of all devices."""
        return self.log_throughput.factor


@dataclass(frozen=True)
class Curve:
    """Throughputs over a number of units of otherwise equal configurations.

    ``label``: what distinguishes it within its origin, a study or a published source. ``laboratory``: who measured a
    published curve; empty for a study. ``points``: in order of their distinct units. ``within_node``: of a curve over
    nodes, the points within one node. ``scaling``: weak or strong. ``has_servers``: parameter servers take part.
    ``on_gpus``: None if unknown. ``configuration_id``: of the largest configuration of a study.
    """

    label: str
    origin: str
    unit: Unit
    points: tuple[CurvePoint, ...]
    scaling: str = WEAK
    within_node: tuple[CurvePoint, ...] = ()
    throughput_unit: str = "samples/s"
    has_servers: bool = False
    on_gpus: bool | None = None
    configuration_id: str = ""
    laboratory: str = ""

    @property
    def title(self) -> str:
        """Its label, or its origin if there is no other curve."""
        return self.label or self.origin

    @property
    def last(self) -> CurvePoint:
        """The largest size."""
        return self.points[-1]

    @property
    def devices_per_unit(self) -> int:
        """How many devices a unit has."""
        return self.last.devices // self.last.units

    @cached_property
    def all_points(self) -> tuple[CurvePoint, ...]:
        """All sizes in order of their devices, also inside one node."""
        return *self.within_node, *self.points

    def until(self, size: int) -> "Curve":
        """Return the curve without what is larger than ``size`` units."""
        return replace(self, points=tuple(point for point in self.points if point.units <= size))

    def replace_point(self, point: CurvePoint, replacement: CurvePoint) -> "Curve":
        """Return the curve with another point in place of one, if it has that."""
        points = list(self.points)
        if point in points:
            points[points.index(point)] = replacement
        return replace(self, points=tuple(points))

    def seconds(self, point: CurvePoint) -> float:
        """Return the time per sample and device; under strong scaling per sample."""
        return self._work(point.devices) / point.throughput

    def throughput(self, seconds: float, units: int) -> float:
        """Return the throughput for a time of ``seconds`` on so many units."""
        return self._work(units * self.devices_per_unit) / seconds

    def _work(self, devices: int) -> int:
        return devices if self.scaling == WEAK else 1


@dataclass(frozen=True)
class _Size:
    """One measured configuration; nodes and devices may be unknown."""

    nodes: int | None
    devices_per_node: int | None
    point: CurvePoint
    configuration_id: str = ""

    @classmethod
    def from_row(cls, row: Any, log_throughput: Estimate) -> "_Size":
        """Return the size of a configuration or published number."""
        nodes, per_node = (None if pd.isna(count) else int(count) for count in (row.nodes, row.devices_per_node))
        devices = int(row.world_size)
        return cls(nodes, per_node, CurvePoint(devices, devices, log_throughput), getattr(row, "configuration_id", ""))

    @property
    def over_nodes(self) -> "_Size":
        """The same, counted in nodes."""
        return replace(self, point=replace(self.point, units=self.nodes or 0))


def curves_of_study(dataset: Dataset) -> list[Curve]:
    """Return the curves of a study, in the order of its plan."""
    rows = dataset.configurations
    rows = rows[rows[dataset.throughput_column].notna()]
    factors = varying(rows, series_factors(rows, dataset.plan.scaling))
    unit, curves = column_named(dataset.throughput_column).unit, list[Curve]()
    by_series: dict[int, list[Any]] = {}
    for configuration_id, position in zip(rows["configuration_id"], curve_numbers(rows, factors), strict=True):
        by_series.setdefault(position, []).append(dataset.configuration_rows[configuration_id])
    for series in by_series.values():
        values = []
        for name in factors:
            value = getattr(series[0], name)
            values.append(value if isinstance(value, str) else f"{column_named(name).label} {value_text(value)}")
        label = _BETWEEN_VALUES.join(values)
        about = Curve(label, dataset.plan.study, Unit.NODE, (), scaling=dataset.plan.scaling, throughput_unit=unit)
        sizes = []
        for row in series:
            sizes.append(_Size.from_row(row, _log_throughput(dataset, row)))
        curves += _curves(about, series, sizes)
    return curves


def _log_throughput(dataset: Dataset, row: Any) -> Estimate:
    """Return the logarithm of a configuration's throughput, with its interval."""
    value, low, high = (float(getattr(row, f"{dataset.throughput_column}{bound}")) for bound in ("", "_low", "_high"))
    if math.isnan(low):
        return Estimate(math.log(value))
    return Estimate.from_printed(value, low, high, int(row.runs_counted), looks=dataset.looks)


@cache
def published_curves() -> tuple[Curve, ...]:
    """Return the curves of all published series, without errors."""
    return tuple(curves_of_sources(None))


def curves_of_sources(names: Iterable[str] | None) -> Iterator[Curve]:
    """Yield the curves of some or all published sources."""
    cells = load(names)
    throughputs = cells[(cells["role"] == "result") & (cells["metric"] == "throughput") & cells["value"].notna()]
    series: dict[str, list[Any]] = {}
    for row in throughputs[["series", "value", "scaling", *_OF_POINT]].itertuples():
        series.setdefault(row.series, []).append(row)
    for name, rows in series.items():
        source, _, label = name.partition("/")
        scaling = WEAK
        if all(row.scaling == STRONG for row in rows):
            scaling = STRONG
        sizes = []
        for row in rows:
            sizes.append(_Size.from_row(row, Estimate(math.log(row.value))))
        laboratory = read_source(source).laboratory
        yield from _curves(Curve(label, source, Unit.NODE, (), scaling=scaling, laboratory=laboratory), rows, sizes)


def _curves(about: Curve, rows: Sequence[Any], sizes: Sequence[_Size]) -> Iterator[Curve]:
    """Yield the curves of rows that differ only in devices."""
    kinds = pd.Series([row.device for row in rows], dtype=object).dropna().unique()
    parameter_servers = pd.Series([row.parameter_servers for row in rows], dtype=object).dropna()
    about = replace(about, has_servers=bool((parameter_servers > 0).any()))
    if len(kinds) == 1:
        about = replace(about, on_gpus=kinds[0] == "gpu")
    over_nodes = [size.over_nodes for size in _select_full_nodes(sizes)]
    in_one_node = [size for size in sizes if size.nodes == 1]
    if any(size.nodes != 1 for size in over_nodes):
        per_node = over_nodes[0].devices_per_node or 0
        partial = [size for size in in_one_node if size.point.devices < per_node]
        yield replace(_curve(about, Unit.NODE, over_nodes), within_node=_distinct_points(partial))
    if in_one_node:
        yield _curve(about, Unit.DEVICE, in_one_node)
    if unknown := [size for size in sizes if size.nodes is None]:
        yield _curve(about, Unit.WORKER, unknown)


def _select_full_nodes(sizes: Sequence[_Size]) -> list[_Size]:
    """Return the sizes with the most frequent, else largest, devices per node."""
    nodes: dict[int, set[int]] = {}
    for size in sizes:
        if size.nodes is not None and size.devices_per_node is not None:
            nodes.setdefault(size.devices_per_node, set()).add(size.nodes)
    if not nodes:
        return []
    full = max(nodes, key=lambda devices: (len(nodes[devices]), max(nodes[devices]), devices))
    return [size for size in sizes if size.devices_per_node == full and size.nodes is not None]


def _curve(about: Curve, unit: Unit, sizes: Sequence[_Size]) -> Curve:
    largest = max(sizes, key=lambda size: size.point.units)
    return replace(about, unit=unit, points=_distinct_points(sizes), configuration_id=largest.configuration_id)


def _distinct_points(sizes: Sequence[_Size]) -> tuple[CurvePoint, ...]:
    """Return the first point of each number of units, in order."""
    points: dict[int, CurvePoint] = {}
    for size in sizes:
        points.setdefault(size.point.units, size.point)
    return tuple(points[units] for units in sorted(points))
