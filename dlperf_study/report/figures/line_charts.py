"""Lines over the number of devices: each has its name at its end, and many are drawn in blocks of a few."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.figure import SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from dlperf_study.core.arrays import Floats, Integers
from dlperf_study.dataset.cells import is_missing
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report.figures.style import PAGE, SOFT, Width, colour, marker, wrapped
from dlperf_study.report.formatting import fitting_unit, format_bounded
from dlperf_study.report.series import Series
from dlperf_study.report.tables.table_builders import intervals

IDEAL, BOUND = "ideal", "full overlap"
Item = TypeVar("Item")
MOST_LABELS = 6
_LETTERS = {"page": 26, "column": 20}
_LINE_INCHES, _MARK_POINTS, _NAME_POINTS = 0.125, 9, 15
_LEGEND_LETTERS_PER_INCH, _LEGEND_LINE_INCHES = 15, 0.15


@dataclass(frozen=True)
class EndLabel:
    """The name of a line that ends at ``value``; NaN: outside."""

    value: float
    position: int
    text: str


def parted(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Return items in as few equal parts as panels can name."""
    count = max(1, math.ceil(len(items) / MOST_LABELS))
    length = math.ceil(len(items) / count)
    return [items[start : start + length] for start in range(0, len(items), max(1, length))]


def labels_inches(texts: Iterable[str], width: Width) -> float:
    """Return how much height names need below each other."""
    return sum(_LINE_INCHES * (_wrapped(name, width).count("\n") + 1 + 1 / 3) for name in texts)


def draw_end_labels(axes: Axes, labels: Iterable[EndLabel], panel_inches: float, width: Width) -> None:
    """Name lines on the right of a panel, near their ends.

    Limits and scales of the axes must be set. A text has ``\\n`` between its parts.
    """
    line_inches = _LINE_INCHES / panel_inches
    ends = []
    for label in labels:
        # What is not in the panel has its name at the bottom, known by the colour and the marker of its line.
        height = 0.0
        if not math.isnan(label.value):
            point = axes.transScale.transform((1.0, label.value))
            height = float(axes.transLimits.transform(point)[1])
        ends.append((height, label.position, _wrapped(label.text, width)))
    ordered = sorted(ends, reverse=True)
    sizes = [line_inches * (name.count("\n") + 1) for *_, name in ordered]
    middles = _spread_apart([height for height, *_ in ordered], sizes, line_inches / 3)
    for middle, (_, position, name) in zip(middles, ordered, strict=True):
        style: dict[str, Any] = {"color": colour(position), "clip_on": False}
        axes.scatter(1, middle, s=12, marker=marker(position), transform=_right_side(axes, _MARK_POINTS), **style)
        axes.text(1, middle, name, va="center", transform=_right_side(axes, _NAME_POINTS), **style)


def _spread_apart(heights: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """Return the middles of names; too many go beyond the top."""
    middles, top = [], max(1.0, sum(sizes) + gap * (len(sizes) - 1))
    for height, size in zip(heights, sizes, strict=True):
        middles.append(min(height, top - size / 2))
        top = middles[-1] - size / 2 - gap
    bottom = 0.0
    for index in reversed(range(len(middles))):
        middles[index] = max(middles[index], bottom + sizes[index] / 2)
        bottom = middles[index] + sizes[index] / 2 + gap
    return middles


def _right_side(axes: Axes, points: float) -> Any:
    return axes.transAxes + ScaledTranslation(points / 72, 0, axes.figure.dpi_scale_trans)


def _wrapped(text: str, width: Width) -> str:
    return "\n".join(wrapped(part, _LETTERS[width.name]) for part in text.split("\n"))


def legend_below(drawing: Drawing, panels: Iterable[Axes], width: Width, named: Collection[str] = ()) -> None:
    """Name what panels show below them; the drawing becomes higher."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            if label not in named:
                handles.setdefault(label, handle)
    for label in {IDEAL, BOUND} & handles.keys():
        # Each line has its own; the legend shows what all have in common.
        handles[label] = copy(handles[label])
        handles[label].set_color(SOFT)
    if handles:
        fitting = math.floor(width.inches * _LEGEND_LETTERS_PER_INCH / (max(map(len, handles)) + 6))
        columns = max(1, min(fitting, len(handles)))
        drawing.set_figheight(drawing.get_figheight() + _LEGEND_LINE_INCHES * math.ceil(len(handles) / columns))
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


WIDE_RANGE = 8
_SHIFT_POINTS, _MOST_SHIFT_POINTS = 3.5, 9
_PANEL_INCHES, _ROW_INCHES = {"page": 1.55, "column": 1.15}, 0.5
_ROOM_ABOVE = 1.06
#: Draws one line of one column into a panel, moved to the right by some points.
DrawLine = Callable[[Axes, Series, str, float], None]


@dataclass(frozen=True)
class LineBlock:
    """A few lines with a panel per column.

    ``names`` and ``details``: what each line is called, and what is said of it once, by its label.
    """

    lines: Sequence[Series]
    columns: Sequence[str]
    names: Mapping[str, str]
    details: Mapping[str, str]
    width: Width

    @property
    def panel_inches(self) -> list[float]:
        """The height of each row of its panels."""
        least, with_details = _PANEL_INCHES[self.width.name], self._texts(has_details=True)
        first = max(least, labels_inches(with_details, self.width))
        if self.width is PAGE:
            return [first]
        without_details = max(least, labels_inches(self._texts(has_details=False), self.width))
        return [first, *[without_details] * (len(self.columns) - 1)]

    def draw(self, panels: Sequence[Axes], draw_line: DrawLine) -> None:
        """Draw every line into the panel of each column."""
        for panel, column in zip(panels, self.columns, strict=True):
            for line, shift in zip(self.lines, shifts(len(self.lines)), strict=True):
                draw_line(panel, line, column, shift)
            panel.set_title(fitting_unit(column, []).axis)

    def name_lines(self, panels: Sequence[Axes]) -> None:
        """Name the lines: once on a page, else at every panel."""
        if self.width is PAGE:
            self._name(panels[-1], self.columns[-1], self.panel_inches[0], has_details=True)
            return
        for index, (panel, column) in enumerate(zip(panels, self.columns, strict=True)):
            self._name(panel, column, self.panel_inches[index], has_details=index == 0)

    def _name(self, panel: Axes, column: str, inches: float, has_details: bool) -> None:
        labels = []
        for line, name in zip(self.lines, self._texts(has_details), strict=True):
            values = line.measured[column].dropna()
            end = float(values.iloc[-1]) if len(values) else float("nan")
            labels.append(EndLabel(end, line.position, name))
        draw_end_labels(panel, labels, inches, self.width)

    def _texts(self, has_details: bool) -> list[str]:
        names = []
        for line in self.lines:
            parts = [self.names[line.label]]
            if has_details:
                parts.append(self.details.get(line.label, ""))
            names.append("\n".join(filter(None, parts)))
        return names


def blocks_inches(blocks: Iterable[LineBlock]) -> float:
    """Return the height of blocks below each other."""
    return sum(inches + _ROW_INCHES for block in blocks for inches in block.panel_inches)


def panels_of_blocks(drawing: Drawing | SubFigure, blocks: Sequence[LineBlock]) -> list[list[Axes]]:
    """Return the panels of each block; panels of a column share y."""
    ratios = [inches + _ROW_INCHES for block in blocks for inches in block.panel_inches]
    columns = len(blocks) * len(blocks[0].columns) // len(ratios)
    grid = drawing.subplots(len(ratios), columns, squeeze=False, height_ratios=ratios)
    panels = [list(row) for row in grid.reshape(len(blocks), -1)]
    for row in panels[1:]:
        for panel, first in zip(row, panels[0], strict=True):
            panel.sharey(first)
    for panel in grid[-1]:
        panel.set_xlabel(fitting_unit("world_size", []).axis)
    return panels


def interval_line(axes: Axes, series: Series, column: str, dashes: str = "-", shift_points: float = 0) -> None:
    """Draw a series against its devices; open markers have no interval.

    The bar of an interval is where the interval is: a published value may be outside that of its own runs.
    """
    rows = series.measured
    low, high = rows[list(intervals()[column])].to_numpy(float).T
    moved = axes.transData + ScaledTranslation(shift_points / 72, 0, axes.figure.dpi_scale_trans)
    style: dict[str, Any] = {"color": colour(series.position), "marker": marker(series.position), "transform": moved}
    axes.plot(rows["world_size"], rows[column], label=series.label, linestyle=dashes, **style)
    # Automatic limits take no notice of what is moved.
    for values in (rows[column], low, high):
        axes.update_datalim(np.column_stack([rows["world_size"], values]))
    has_interval = ~np.isnan(low)
    ends = (rows["world_size"][has_interval], low[has_interval], high[has_interval])
    axes.vlines(*ends, color=style["color"], linewidth=1.4, alpha=0.6, transform=moved, label=f"_{series.label}")
    # The ratios of a baseline are 1 by definition, its throughput is measured.
    is_exact = rows["is_baseline"].to_numpy(bool) & (column != series.throughput_column)
    without_interval = rows.loc[np.isnan(low) & ~is_exact, ["world_size", column]]
    axes.plot(
        without_interval["world_size"],
        without_interval[column],
        linestyle="none",
        markerfacecolor="white",
        zorder=3,
        **style,
    )


def shifts(count: int) -> list[float]:
    """Return each line's shift in points, so intervals are side by side."""
    step = min(_SHIFT_POINTS, 2 * _MOST_SHIFT_POINTS / max(1, count - 1))
    return [step * (position - (count - 1) / 2) for position in range(count)]


def baseline_label(line: Series) -> str:
    """Return the absolute throughput of the baseline of a line."""
    baseline = f"baseline_{line.throughput_column}"
    columns = [baseline, f"{baseline}_low", f"{baseline}_high", "baseline_printed"]
    texts: dict[str, None] = {}
    for throughput, low, high, printed in line.measured.reindex(columns=columns).itertuples(index=False):
        if not is_missing(throughput):
            texts[format_bounded(throughput, low, high)[0] if is_missing(printed) else printed] = None
    if not texts:
        return "no baseline measured"
    return f"1× = {' or '.join(texts)} {COLUMNS[line.throughput_column].unit}"


def ideal_line(
    axes: Axes, devices: Sequence[int] | Integers, values: Sequence[float] | Floats, line_colour: str = SOFT
) -> None:
    """Draw what perfect scaling from the baseline would give."""
    axes.plot(devices, values, linestyle=(0, (1, 1.5)), linewidth=0.9, color=line_colour, zorder=1, label=IDEAL)


def bound_line(axes: Axes, rows: pd.DataFrame, column: str, line_colour: str) -> None:
    """Draw the upper bound: a step takes max(computation, communication).

    Without a measured communication there is no bound; a single device without a server has none to measure.
    """
    is_alone = (rows["world_size"] == 1) & (rows["parameter_servers"] == 0)
    longer = np.maximum(rows["compute_seconds"], rows["communication_seconds"])
    shortest = rows["compute_seconds"].where(is_alone, longer)
    # Throughputs, speedups and efficiencies are all proportional to the throughput of steps.
    bounds = rows[column] * rows["broken_down_step_seconds"] / shortest
    has_bound = bounds.notna().to_numpy(bool)
    style: dict[str, Any] = {"linestyle": (0, (4, 1.5)), "linewidth": 0.8, "color": line_colour, "zorder": 1}
    axes.plot(rows["world_size"][has_bound], bounds[has_bound], label=BOUND, **style)


def device_axes(axes: Axes, devices: Iterable[int], logarithmic_y: bool) -> None:
    """Put a tick at each number of devices; wide ranges are logarithmic."""
    ticks = sorted(set(devices))
    is_wide = ticks[-1] >= WIDE_RANGE * ticks[0]
    axes.grid(True)
    axes.margins(x=0.16, y=0.1)
    if is_wide:
        axes.set_xscale("log", base=2)
    if is_wide and logarithmic_y:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        # Automatic limits may leave the highest marks without room; panels that share this axis may have higher ones.
        axes.set_ylim(0, max(axes.get_ylim()[1], _ROOM_ABOVE * axes.dataLim.y1))
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
