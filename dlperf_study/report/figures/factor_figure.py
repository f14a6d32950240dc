"""Any number over the levels of any factor: of the report for each factor that a study varies, and of the explorer."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import PAGE_INCHES, colour, marker, publication_style, quantity_axes
from dlperf_study.report.formatting import display_name, level_name
from dlperf_study.report.series import devices_label, joined, level_label, varying_factors
from dlperf_study.report.tables.cells import measured_column

#: Of one panel and of a row of the legend; and how far apart the colours of one level are, in levels.
_PANEL_INCHES, _LEGEND_INCHES, _SPREAD = 2.5, 0.14, 0.5
_MOST_COLUMNS, _LEGEND_COLUMNS = 3, 2
#: What the other factors of a row are, in words.
_SETTING = "setting"
EXPLANATION = "Mark: a mean over runs; bar: its 95 % interval; an open mark has none. Levels are at equal distances."


def factors(dataset: Dataset) -> Iterator[Figure]:
    """Yield the throughput over each factor but devices and model, of settings that were measured at several levels.

    A colour is a setting: the same levels of all other factors, and the same devices.
    """
    for name in filter("model".__ne__, varying_factors(dataset)):
        rows = _comparable_rows(dataset, name)
        if not rows.empty:
            title = f"Throughput by {COLUMNS[name].label.lower()}"
            caption = f"{EXPLANATION} {context.repetition(dataset)} {context.conditions(dataset)}"
            with publication_style():
                drawing = factor_drawing(rows, "throughput", name, _SETTING, "model")
            alt = f"{title}. {'; '.join(_in_words(dataset, rows, name))}."
            yield Figure(f"factor-{name}".replace("_", "-"), title, caption, drawing, page_caption=EXPLANATION, alt=alt)


def factor_drawing(rows: pd.DataFrame, metric: str, x: str, colour_by: str = "", panel_by: str = "") -> Drawing:
    """Return a drawing of the column ``metric`` over the levels of ``x``: a mark for each row, a bar for its interval.

    ``colour_by``, ``panel_by``: columns whose levels have a colour or a panel of their own; empty for none. There is no
    line between levels, because nothing was measured there.
    """
    panels, colours = _levels(rows, panel_by), _levels(rows, colour_by)
    columns = min(len(panels), _MOST_COLUMNS)
    lines = -(-len(panels) // columns)
    legend_rows = -(-len(colours) // _LEGEND_COLUMNS) if colour_by else 0
    drawing = Drawing(figsize=(PAGE_INCHES, _PANEL_INCHES * lines + _LEGEND_INCHES * legend_rows))
    grid = drawing.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        _draw(axes, _of(rows, panel_by, panel), metric, x, colour_by, colours, _levels(rows, x))
        axes.set_title(level_label(panel_by, panel) if panel_by else "")
    for axes in grid[len(panels) :]:
        axes.remove()
    drawing.supxlabel(label_of(x), fontsize=7)
    grid[0].set_ylabel(label_of(metric))
    grid[0].set_ylim(bottom=min(0.0, grid[0].get_ylim()[0]))
    if colour_by:
        _add_legend(drawing)
    return drawing


def label_of(name: str) -> str:
    """Return the label of a column with its unit."""
    column = COLUMNS[name]
    return f"{column.label} ({column.unit})" if column.unit else column.label


def _comparable_rows(dataset: Dataset, factor: str) -> pd.DataFrame:
    """Return the measured configurations whose setting has several levels of a factor, with that setting."""
    rows = context.measured(dataset)
    other_factors = [name for name in varying_factors(dataset) if name not in (factor, "model")]
    settings = []
    for row in rows.itertuples():
        settings.append(joined(*(level_label(name, getattr(row, name)) for name in other_factors), devices_label(row)))
    labelled = rows.assign(**{_SETTING: settings})
    counts = labelled.groupby(["model", _SETTING])[factor].transform("nunique")
    return labelled[counts > 1]


def _in_words(dataset: Dataset, rows: pd.DataFrame, factor: str) -> Iterator[str]:
    column = measured_column(dataset, "throughput")
    for row in rows.itertuples():
        cell = column.cell(row)
        level = level_label(factor, getattr(row, factor))
        setting = joined(display_name(row.model), getattr(row, _SETTING))
        yield f"{setting}, {level}: {cell.text} {cell.interval} {column.heading.unit}"


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
        label = _name_of(colour_by, level) if colour_by else None
        style: dict[str, Any] = {"color": colour(position), "marker": marker(position), "linestyle": "none"}
        has_interval = chosen[f"{metric}_low"].notna().to_numpy()
        # The legend has the filled mark, where there is one.
        open_label, filled_label = (None, label) if has_interval.any() else (label, None)
        with_interval, without = chosen[metric][has_interval], chosen[metric][~has_interval]
        axes.plot(positions[~has_interval], without, fillstyle="none", label=open_label, **style)
        axes.plot(positions[has_interval], with_interval, label=filled_label, **style)
        axes.vlines(positions, chosen[f"{metric}_low"], chosen[f"{metric}_high"], color=colour(position))
    names = [level_name(x, level) for level in levels]
    is_long = sum(map(len, names)) > 40
    axes.set_xticks(range(len(levels)), names, rotation=30 if is_long else 0, ha="right" if is_long else "center")
    axes.set_xlim(-0.5, len(levels) - 0.5)
    quantity_axes(axes)


def _add_legend(drawing: Drawing) -> None:
    """Name the colours of all panels once, above them."""
    handles: dict[str, Any] = {}
    for axes in drawing.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    drawing.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=_LEGEND_COLUMNS)


def _name_of(factor: str, level: Any) -> str:
    return str(level) if factor == _SETTING else level_label(factor, level)


def _levels(rows: pd.DataFrame, factor: str) -> list[Any]:
    """Return the levels of a factor in order; of no factor, one."""
    return sorted(rows[factor].dropna().unique().tolist()) if factor else [None]


def _of(rows: pd.DataFrame, factor: str, level: Any) -> pd.DataFrame:
    return rows[rows[factor] == level] if factor else rows
