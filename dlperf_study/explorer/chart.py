"""One chart of any metric over any factor, with intervals; colour and panels by further factors."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.columns import COLUMNS
from dlperf_study.explorer.results import Results, label_of, require
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import PAGE_INCHES, colour, marker, publication_style, quantity_axes
from dlperf_study.report.series import level_label

#: Of one panel; and how far apart the colours of one level are, in levels.
_PANEL_INCHES, _SPREAD = 2.6, 0.5
_MOST_COLUMNS = 3
_NOTHING = "No row that is chosen has this metric."
_CAPTION = "Mark: the value of a row; bar: its 95 % interval; an open mark has none."


def chart(results: Results, metric: str, x: str, colour_by: str = "", panel_by: str = "") -> Figure:
    """Return a figure of ``metric`` over the levels of ``x``: a mark for each row, a bar for its 95 % interval.

    A row without an interval has an open mark. ``colour_by`` and ``panel_by``: factors whose levels have a colour or a
    panel of their own; empty for none. Levels are at equal distances, and no line is between them: nothing was measured
    there.

    Raises DlperfStudyError for a metric or factor that the results do not have.
    """
    require(metric, results.metrics, "metric")
    for factor in filter(None, (x, colour_by, panel_by)):
        require(factor, list(results.rows.columns), "factor")
    rows = results.rows[results.rows[metric].notna()]
    title = f"{results.name}: {COLUMNS[metric].label.lower()}"
    if rows.empty:
        return Figure("exploration", title, _CAPTION, None, _NOTHING)
    with publication_style():
        drawing = _drawing(rows, metric, x, colour_by, panel_by)
    return Figure("exploration", title, _CAPTION, drawing)


def _drawing(rows: pd.DataFrame, metric: str, x: str, colour_by: str, panel_by: str) -> Drawing:
    panels = _levels(rows, panel_by)
    columns = min(len(panels), _MOST_COLUMNS)
    lines = -(-len(panels) // columns)
    drawing = Drawing(figsize=(PAGE_INCHES, _PANEL_INCHES * lines + 0.4))
    grid = drawing.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        _draw(axes, _of(rows, panel_by, panel), metric, x, colour_by, _levels(rows, colour_by), _levels(rows, x))
        axes.set_title(level_label(panel_by, panel) if panel_by else "")
    for axes in grid[len(panels) :]:
        axes.remove()
    _name(drawing, grid[0], metric, x, has_legend=bool(colour_by))
    return drawing


def _draw(
    axes: Axes, rows: pd.DataFrame, metric: str, x: str, colour_by: str, colours: list[Any], levels: list[Any]
) -> None:
    """Draw one panel; colours and positions are those of all panels."""
    for position, level in enumerate(colours):
        chosen = _of(rows, colour_by, level)
        if chosen.empty:
            continue
        shift = _SPREAD * ((position + 0.5) / len(colours) - 0.5)
        positions = np.array([levels.index(value) for value in chosen[x]]) + shift
        label = level_label(colour_by, level) if colour_by else None
        style: dict[str, Any] = {"color": colour(position), "marker": marker(position), "linestyle": "none"}
        has_interval = chosen[f"{metric}_low"].notna().to_numpy()
        axes.plot(positions, chosen[metric], fillstyle="none", label=label, **style)
        axes.plot(positions[has_interval], chosen[metric][has_interval], **style)
        axes.vlines(positions, chosen[f"{metric}_low"], chosen[f"{metric}_high"], color=colour(position))
    names = [str(level) for level in levels]
    is_long = sum(map(len, names)) > 40
    axes.set_xticks(range(len(levels)), names, rotation=30 if is_long else 0, ha="right" if is_long else "center")
    axes.set_xlim(-0.5, len(levels) - 0.5)
    quantity_axes(axes)


def _name(drawing: Drawing, first_axes: Axes, metric: str, x: str, has_legend: bool) -> None:
    drawing.supxlabel(label_of(x), fontsize=7)
    first_axes.set_ylabel(label_of(metric))
    first_axes.set_ylim(bottom=min(0.0, first_axes.get_ylim()[0]))
    if has_legend:
        handles: dict[str, Any] = {}
        for axes in drawing.axes:
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
        drawing.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4)


def _levels(rows: pd.DataFrame, factor: str) -> list[Any]:
    """Return the levels of a factor in order; of no factor, one."""
    return sorted(rows[factor].dropna().unique().tolist()) if factor else [None]


def _of(rows: pd.DataFrame, factor: str, level: Any) -> pd.DataFrame:
    return rows[rows[factor] == level] if factor else rows
