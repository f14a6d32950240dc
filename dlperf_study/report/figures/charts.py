"""What the figures share: panels, lines with intervals, rows of categories, axes and legends."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from copy import copy
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.figure import SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.context import completed_runs
from dlperf_study.report.figures.style import (
    COMPUTATION,
    EXPOSED,
    INK,
    INPUT,
    PAGE_INCHES,
    SOFT,
    category_axes,
    colour,
    marker,
    quantity_axes,
)
from dlperf_study.report.formatting import Unit, is_missing, unit_of, with_digits_of_interval
from dlperf_study.report.series import Series
from dlperf_study.report.tables.cells import INTERVALS

QUICK = "quick: not for publication"
IDEAL, BOUND = "ideal", "bound"
ROW_INCHES = 0.21
#: From this ratio of the largest to the smallest number of devices on, axes are logarithmic.
WIDE_RANGE = 8
_LETTERS_PER_INCH = 15
#: So many lines have their names at their ends; more have a legend.
MOST_END_LABELS = 6
#: Letters on a line of such a name, and the height of that line.
_END_LABEL_LETTERS, _END_LABEL_INCHES = 26, 0.125
#: How far intervals at the same number of devices are apart, and how far from the tick the outermost are at most.
_SHIFT_POINTS, _MOST_SHIFT_POINTS = 3.5, 9


def panels(
    dataset: Dataset, rows: int, columns: int, height_inches: float, share_y: bool = False
) -> tuple[Drawing, list[Axes]]:
    """Return a page-wide drawing with a grid of panels."""
    drawing = page(dataset, height_inches)
    axes = drawing.subplots(rows, columns, squeeze=False, sharey=share_y)
    return drawing, list(axes.flat)


def page(dataset: Dataset, height_inches: float) -> Drawing:
    """Return a page-wide drawing without panels; that of a quick study says that it is one."""
    drawing = Drawing(figsize=(PAGE_INCHES, height_inches), layout="constrained")
    if dataset.plan.quick:
        drawing.suptitle(QUICK, x=0.995, ha="right", color=SOFT)
    return drawing


def category_panel(dataset: Dataset, labels: Sequence[str], extra_inches: float = 0.75) -> tuple[Drawing, Axes]:
    """Return a page-wide drawing with one horizontal row per label."""
    drawing, (axes,) = panels(dataset, 1, 1, extra_inches + ROW_INCHES * len(labels))
    category_axes(axes, list(labels))
    return drawing, axes


def runs_and_means(dataset: Dataset, axes: Axes, rows: pd.DataFrame) -> None:
    """Draw throughputs at the ``y`` of each row: runs as dots, a mark for their mean, a bar for its interval."""
    runs = at_same_height(completed_runs(dataset), rows)
    for row in rows.itertuples():
        line_colour = colour(row.position)
        ends = [row.throughput_low, row.throughput_high]
        axes.plot(ends, [row.y, row.y], color=line_colour, linewidth=3.5, alpha=0.35)
        axes.plot(row.throughput, row.y, marker="|", markersize=9, markeredgewidth=1.6, color=line_colour)
    axes.plot(runs["throughput"], runs["y"], linestyle="none", marker="o", markersize=2.4, color=INK, alpha=0.7)
    axes.set_xlim(left=0)
    axes.set_xlabel(unit_of("throughput", rows["throughput"]).axis)


def at_same_height(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``table`` about the configurations ``rows``, each with the ``y`` of its configuration."""
    heights = dict(zip(rows["identity"], rows["y"], strict=True))
    shown = table[table["identity"].isin(heights)]
    return shown.assign(y=shown["identity"].map(heights).astype(int))


def step_bars(axes: Axes, rows: pd.DataFrame, unit: Unit) -> None:
    """Draw each step at the ``y`` of its row: computation, waiting for its batch, exposed communication.

    A bar is as long as its step, also where noise made the computation alone take longer than the step.
    """
    step, exposed = rows["step_seconds"] / unit.size, rows["exposed_seconds"].clip(lower=0) / unit.size
    waiting = rows["input_seconds"].fillna(0) / unit.size
    computation = step - exposed - waiting
    style: dict[str, Any] = {"y": rows["y"], "height": 0.62}
    axes.barh(width=computation, color=COMPUTATION, label=COLUMNS["computation_seconds"].label, **style)
    if (waiting > 0).any():
        axes.barh(width=waiting, left=computation, color=INPUT, label=COLUMNS["input_seconds"].label, **style)
    start = computation + waiting
    axes.barh(width=exposed, left=start, color=EXPOSED, label=COLUMNS["exposed_seconds"].label, **style)
    # No limit is set: bars hold the axis at 0, and it still has room for what is drawn beyond them.
    axes.margins(x=0.12)
    axes.set_xlabel(unit.axis)


def interval_line(axes: Axes, series: Series, column: str, dashes: str = "-", shift_points: float = 0) -> None:
    """Draw one series against its devices, moved to the right; a point without an interval has an open marker.

    The bar of an interval is where the interval is: a published value may be outside that of its own runs.
    """
    rows = series.measured
    low, high = rows[list(INTERVALS[column])].to_numpy(float).T
    moved = axes.transData + ScaledTranslation(shift_points / 72, 0, axes.figure.dpi_scale_trans)
    style: dict[str, Any] = {"color": colour(series.position), "marker": marker(series.position), "transform": moved}
    axes.plot(rows["world_size"], rows[column], label=series.label, linestyle=dashes, **style)
    bar: dict[str, Any] = {"fmt": "none", "capsize": 2, "elinewidth": 0.9, "ecolor": style["color"], "transform": moved}
    axes.errorbar(rows["world_size"], (low + high) / 2, yerr=(high - low) / 2, **bar)
    without_interval = rows[np.isnan(low) & ~rows["is_baseline"].to_numpy(bool)]
    axes.plot(
        without_interval["world_size"],
        without_interval[column],
        linestyle="none",
        markerfacecolor="white",
        zorder=3,
        **style,
    )


def shifts(count: int) -> list[float]:
    """Return by how many points each of so many lines is moved, so that their intervals are next to each other."""
    step = min(_SHIFT_POINTS, 2 * _MOST_SHIFT_POINTS / max(1, count - 1))
    return [step * (position - (count - 1) / 2) for position in range(count)]


def end_labels(axes: Axes, lines: Sequence[Series], column: str, labels: dict[str, str], panel_inches: float) -> None:
    """Name each line to the right of a panel, as high as its last point where that leaves room for the others.

    Limits and scales of the axes must be set. ``labels``: names by the label of the line, with ``\\n`` between parts.
    """
    # A name has the colour and the marker of its line, so it is known also where the line ends elsewhere.
    ends = []
    for line in lines:
        point = axes.transScale.transform((1.0, float(line.measured[column].dropna().iloc[-1])))
        ends.append((float(axes.transLimits.transform(point)[1]), line, _wrapped(labels[line.label])))
    line_height = _END_LABEL_INCHES / panel_inches
    top = math.inf
    for height, line, text in sorted(ends, key=itemgetter(0), reverse=True):
        size = line_height * (text.count("\n") + 1)
        middle = min(height, top - size / 2)
        top = middle - size / 2 - line_height / 3
        style: dict[str, Any] = {"transform": axes.transAxes, "color": colour(line.position), "clip_on": False}
        axes.plot(1.06, middle, marker=marker(line.position), **style)
        axes.text(1.1, middle, text, va="center", **style)


def end_labels_inches(labels: Iterable[str]) -> float:
    """Return how much height the names of lines need below each other."""
    return sum(_END_LABEL_INCHES * (_wrapped(label).count("\n") + 1 + 1 / 3) for label in labels)


def _wrapped(label: str) -> str:
    return "\n".join(textwrap.fill(part, _END_LABEL_LETTERS) for part in label.split("\n"))


def baseline_label(line: Series) -> str:
    """Return the absolute throughput of the baseline of a line, as tables print it; of a published one, as printed."""
    columns = ["baseline_throughput", "baseline_throughput_low", "baseline_throughput_high", "baseline_printed"]
    texts: dict[str, None] = {}
    for rate, low, high, printed in line.measured.reindex(columns=columns).itertuples(index=False):
        if not is_missing(rate):
            texts[with_digits_of_interval(rate, low, high) if is_missing(printed) else printed] = None
    if not texts:
        return "no baseline measured"
    return f"1× = {' or '.join(texts)} {COLUMNS['throughput'].unit}"


def ideal_line(axes: Axes, devices: Sequence[int], values: Sequence[float], line_colour: str = SOFT) -> None:
    """Draw what perfect scaling from the baseline would give."""
    axes.plot(devices, values, linestyle=(0, (1, 1.5)), linewidth=0.9, color=line_colour, zorder=1, label=IDEAL)


def bound_line(axes: Axes, rows: pd.DataFrame, column: str, line_colour: str) -> None:
    """Draw the most that a column can be: a step takes at least its computation, and at least its exchange alone.

    Where an exchange was not measured there is no bound; a single device without a server has none to measure.
    """
    is_alone = (rows["world_size"] == 1) & (rows["servers"] == 0)
    longer = np.maximum(rows["computation_seconds"], rows["exchange_seconds"])
    shortest = rows["computation_seconds"].where(is_alone, longer)
    # Rates, speedups and efficiencies are all proportional to the rate of steps.
    bounds = rows[column] * rows["step_seconds"] / shortest
    known = bounds.notna().to_numpy(bool)
    style: dict[str, Any] = {"linestyle": (0, (4, 1.5)), "linewidth": 0.8, "color": line_colour, "zorder": 1}
    axes.plot(rows["world_size"][known], bounds[known], label=BOUND, **style)


def device_axes(axes: Axes, devices: Iterable[int], logarithmic_y: bool) -> None:
    """Put a tick at each number of devices that was measured; wide ranges are logarithmic to the base of two."""
    ticks = sorted(set(devices))
    is_wide = ticks[-1] >= WIDE_RANGE * ticks[0]
    quantity_axes(axes)
    axes.margins(x=0.1, y=0.1)
    if is_wide:
        axes.set_xscale("log", base=2)
    if is_wide and logarithmic_y:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))


def legend_below(drawing: Drawing | SubFigure, axes: Axes, labels: dict[str, str], named: Iterable[str] = ()) -> None:
    """Name the lines of a drawing, or of a part of one, below it, once each; ``labels`` says how.

    ``named``: the labels of lines that have their names elsewhere.
    """
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    for label in named:
        handles.pop(label, None)
    for last in (IDEAL, BOUND):
        if last in handles:
            # Each line has its own; the legend shows what all have in common.
            handles[last] = copy(handles.pop(last))
            handles[last].set_color(SOFT)
    names = [labels.get(str(label), str(label)) for label in handles]
    fitting = math.floor(PAGE_INCHES * _LETTERS_PER_INCH / (max(map(len, names)) + 6))
    drawing.legend(handles.values(), names, loc="outside lower center", ncols=max(1, min(fitting, len(names))))
