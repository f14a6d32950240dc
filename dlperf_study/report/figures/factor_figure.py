"""Any number over the values of any factor: of the report for each factor that a study varies, and of the explorer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.series import varying_factors
from dlperf_study.metrics.columns import COLUMNS, column_named
from dlperf_study.report import context, formatting, series
from dlperf_study.report.figures.charts import QUICK, labelled_page
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.line_charts import WIDE_RANGE, EndLabel, draw_end_labels, labels_inches, parted
from dlperf_study.report.figures.style import Width, colour, marker
from dlperf_study.report.formatting import text_if
from dlperf_study.report.tables.table_builders import measured_column

_PANEL_INCHES, _MARGIN_INCHES, _COLUMNS = 1.6, 0.5, {"page": 2, "column": 1}
_SPREAD, _LETTERS_OF_VALUES = 0.5, 25
_LETTER_HEIGHT_INCHES = 0.03
_HEADROOM = 0.04
SPEEDUP, EFFICIENCY, GUIDE = "speedup", "efficiency", "guide"
SETTING, MOST_SETTINGS = "setting", 40
MOST_VALUES = 60
EXPLANATION = "Mark: mean over runs; bar: 95 % CI; open marks have none."
EQUAL_DISTANCES = "Values are at equal distances."
IDEAL = "Dotted: ideal."


def factors(dataset: Dataset) -> Iterator[Figure]:
    """Yield the throughput over each factor except devices and model.

    A colour is a setting: the same values of all other factors, and the same devices.
    """
    for name in filter("model".__ne__, varying_factors(dataset)):
        comparable = _comparable_rows(dataset, name)
        at_few_values = _at_few_values(comparable, name)
        rows = _most_different(at_few_values, dataset.throughput_column)
        if not rows.empty:
            title = f"{COLUMNS[dataset.throughput_column].label} by {column_named(name).words}"
            omission = _omission(comparable[name].nunique(), at_few_values[SETTING].nunique())
            on_page = f"{EXPLANATION} {EQUAL_DISTANCES}{omission}"
            caption = f"{on_page} {context.repetition(dataset)} {context.conditions(dataset)}"
            draw = FactorChart(
                rows, dataset.throughput_column, name, SETTING, "model", is_quick=dataset.plan.quick
            ).drawing
            alt = f"{title}. {'; '.join(_in_words(dataset, rows, name))}."
            yield Figure(f"factor-{name}".replace("_", "-"), title, caption, draw, page_caption=on_page, alt=alt)


def _omission(values: int, settings: int) -> str:
    spread = f" {MOST_VALUES} of {values} values are shown, evenly spread,"
    of_values = f"{spread} with the settings that were measured at two of these or more."
    of_settings = f" The {MOST_SETTINGS} of {settings} settings whose values differ most are shown."
    return text_if(values > MOST_VALUES, of_values) + text_if(settings > MOST_SETTINGS, of_settings)


def _at_few_values(rows: pd.DataFrame, factor: str) -> pd.DataFrame:
    """Return rows at as many evenly spread values as fit."""
    values = series.ordered_values(rows[factor])
    if len(values) <= MOST_VALUES:
        return rows
    positions = np.linspace(0, len(values) - 1, MOST_VALUES).round().astype(int)
    rows = rows[rows[factor].isin(np.array(values)[positions])]
    return rows[rows.groupby(["model", SETTING])[factor].transform("nunique") > 1]


def _most_different(rows: pd.DataFrame, throughput: str) -> pd.DataFrame:
    if rows.empty or rows[SETTING].nunique() <= MOST_SETTINGS:
        return rows
    values = rows.groupby(SETTING, observed=True)[throughput]
    chosen = (values.max() / values.min()).nlargest(MOST_SETTINGS).index
    return rows[rows[SETTING].isin(chosen)]


@dataclass(frozen=True)
class FactorChart:
    """The column ``metric`` of ``rows`` over the values of ``x``.

    ``hue``, ``col``: columns whose values have a colour or a panel of their own; empty for none. Lines connect numbers
    of devices, which have a logarithmic axis, and a dotted one is ideal; other values have none, because nothing was
    measured between them.
    """

    rows: pd.DataFrame
    metric: str
    x: str
    hue: str = ""
    col: str = ""
    is_quick: bool = False

    def drawing(self, width: Width) -> Drawing:
        """Return a drawing; many colours are spread over several panels."""
        panels = list(_panels(self.rows, self.x, self.hue, self.col))
        columns = min(len(panels), _COLUMNS[width.name])
        lines = -(-len(panels) // columns)
        inches = max(_PANEL_INCHES, *(labels_inches(panel.names, width) for panel in panels))
        names = list(map(partial(formatting.value_name, self.x), _values(self.rows, self.x)))
        height = inches + _MARGIN_INCHES + (_LETTER_HEIGHT_INCHES * max(map(len, names)) if _are_long(names) else 0.0)
        drawing = labelled_page(self.is_quick, width, height * lines)
        grid = drawing.subplots(lines, columns, squeeze=False, sharey=True).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            panel.draw(axes, self.metric)
        for axes in grid[len(panels) :]:
            axes.remove()
        drawing.supxlabel(axis_label(self.x), fontsize=7)
        drawing.supylabel(axis_label(self.metric), fontsize=7)
        _leave_headroom(grid[0])
        for axes, panel in zip(grid, panels, strict=False):
            draw_end_labels(axes, panel.end_labels(self.metric), inches, width)
        return drawing

    def draw_on(self, axes: Axes) -> None:
        """Draw all colours on given axes; a legend names the colours."""
        colours = _values(self.rows, self.hue)
        marks = {position: _at_value(self.rows, self.hue, value) for position, value in enumerate(colours)}
        title, names = text_if(self.is_quick, QUICK), _names(self.hue, colours)
        panel = _Panel(title, marks, names, self.x, _values(self.rows, self.x))
        panel.draw(axes, self.metric)
        axes.set_xlabel(axis_label(self.x))
        axes.set_ylabel(axis_label(self.metric))
        _leave_headroom(axes)
        handles = []
        for position, name in enumerate(panel.names):
            handles.append(Line2D([], [], color=colour(position), marker=marker(position), linestyle="", label=name))
        if handles:
            axes.legend(handles=handles)


def _leave_headroom(axes: Axes) -> None:
    """Start a linear vertical axis at 0 or below; leave headroom."""
    if axes.get_yscale() == "log":
        return
    lowest, highest = axes.get_ylim()
    # An open mark has no interval whose bar would keep it away from the edge.
    axes.set_ylim(min(0.0, lowest), highest + _HEADROOM * (highest - min(0.0, lowest)))


def _panels(rows: pd.DataFrame, x: str, hue: str, col: str) -> "Iterator[_Panel]":
    """Yield the panels; positions and colours are the same in all."""
    colours, values = _values(rows, hue), _values(rows, x)
    for panel in _values(rows, col):
        of_panel = _at_value(rows, col, panel)
        shown = [value for value in colours if len(_at_value(of_panel, hue, value))]
        for part in parted(shown):
            marks = {colours.index(value): _at_value(of_panel, hue, value) for value in part}
            title = _names(col, [panel])[0] if col else ""
            yield _Panel(title, marks, _names(hue, part), x, values)


@dataclass(frozen=True)
class _Panel:
    """One panel: the rows of each colour, and the colour names."""

    title: str
    marks: dict[int, pd.DataFrame]
    names: list[str]
    x: str
    values: list[Any]

    def draw(self, axes: Axes, metric: str) -> None:
        """Draw marks and bars; marks at one value are side by side, at one number of devices not."""
        for order_in_panel, (position, rows) in enumerate(self.marks.items()):
            shift = 0.0 if self._is_over_devices else _SPREAD * ((order_in_panel + 0.5) / len(self.marks) - 0.5)
            x_values = list(rows[self.x].map(self._x_positions) + shift)
            # Of several marks at one value no line tells which are alike.
            if self._is_over_devices and len(set(x_values)) == len(x_values):
                points = sorted(zip(x_values, rows[metric], strict=True))
                axes.plot(*zip(*points, strict=True), color=colour(position), linewidth=0.7, alpha=0.6, gid=GUIDE)
            _draw_marks(axes, rows, metric, x_values, position)
        if self._is_over_devices:
            self._draw_ideal(axes, metric)
            self._make_logarithmic(axes, metric)
        else:
            axes.set_xlim(-0.5, len(self.values) - 0.5)
        names = list(map(partial(formatting.value_name, self.x), self.values))
        axes.set_xticks(list(self._x_positions.values()), names)
        if _are_long(names):
            axes.tick_params(axis="x", rotation=30)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")
        axes.set_title(self.title)
        axes.grid(True)

    @property
    def _is_over_devices(self) -> bool:
        return self.x == "world_size"

    @property
    def _x_positions(self) -> dict[Any, Any]:
        """The place of each value: numbers of devices are at their own."""
        return dict(zip(self.values, self.values if self._is_over_devices else count(), strict=False))

    def _make_logarithmic(self, axes: Axes, metric: str) -> None:
        """Make the axis of devices logarithmic, and also the axis of a value that grows with them."""
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.margins(x=0.1)
        is_wide = self.values[-1] >= WIDE_RANGE * self.values[0]
        if metric == SPEEDUP or (is_wide and metric in ("throughput", "token_throughput")):
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))

    def _draw_ideal(self, axes: Axes, metric: str) -> None:
        rows = pd.concat(self.marks.values())
        if metric not in (SPEEDUP, EFFICIENCY) or not {SPEEDUP, EFFICIENCY} <= set(rows):
            return
        ideals = (rows[SPEEDUP] / rows[EFFICIENCY]).groupby(rows[self.x]).agg(["min", "max"]).dropna()
        if metric == SPEEDUP and not np.allclose(ideals["min"], ideals["max"]):
            # Baselines on several numbers of devices have no ideal in common.
            return
        heights = ideals["min"] if metric == SPEEDUP else [1.0] * len(ideals)
        axes.plot(ideals.index, heights, color="0.5", linestyle=":", linewidth=1, zorder=0, gid=GUIDE)

    def end_labels(self, metric: str) -> list[EndLabel]:
        """Return each colour's name, as high as its last mark."""
        labels = []
        for (position, rows), name in zip(self.marks.items(), self.names, strict=False):
            last = max(rows.index, key=lambda index: self.values.index(rows.loc[index, self.x]))
            labels.append(EndLabel(float(rows.loc[last, metric]), position, name))
        return labels


def _names(factor: str, values: Sequence[Any]) -> list[str]:
    if not factor:
        return []
    if factor == SETTING:
        return list(values)
    return list(map(partial(series.value_label, factor), values))


def _are_long(names: list[str]) -> bool:
    return sum(map(len, names)) > _LETTERS_OF_VALUES


def _draw_marks(axes: Axes, rows: pd.DataFrame, metric: str, x_values: list[float], position: int) -> None:
    positions = np.array(x_values)
    style: dict[str, Any] = {"color": colour(position), "marker": marker(position), "linestyle": "none"}
    has_interval = rows[f"{metric}_low"].notna().to_numpy()
    axes.plot(positions[~has_interval], rows[metric][~has_interval], fillstyle="none", **style)
    axes.plot(positions[has_interval], rows[metric][has_interval], **style)
    axes.vlines(positions, rows[f"{metric}_low"], rows[f"{metric}_high"], color=colour(position))


def axis_label(name: str) -> str:
    """Return the label of a column with its unit."""
    column = column_named(name)
    return column.label + text_if(column.unit, f" ({column.unit})")


def _comparable_rows(dataset: Dataset, factor: str) -> pd.DataFrame:
    """Return measured configurations whose setting has several values of a factor."""
    rows, usual = dataset.measured, series.usual_values(dataset.whole or dataset)
    other_factors = [name for name in varying_factors(dataset) if name not in (factor, "model")]
    settings = []
    for row in rows.itertuples():
        values = ((name, getattr(row, name)) for name in other_factors)
        labels = [series.value_label(name, value) for name, value in values if series.is_named(name, value, usual)]
        settings.append(series.joined(*labels, series.devices_label(row)))
    labelled = rows.assign(**{SETTING: settings})
    counts = labelled.groupby(["model", SETTING])[factor].transform("nunique")
    return labelled[counts > 1]


def _in_words(dataset: Dataset, rows: pd.DataFrame, factor: str) -> Iterator[str]:
    column = measured_column(dataset, dataset.throughput_column)
    for row in rows.itertuples():
        cell = column.cell(row)
        value = series.value_label(factor, getattr(row, factor))
        setting = series.joined(formatting.model_name(row), getattr(row, SETTING))
        yield f"{setting}, {value}: {cell.text} {cell.interval} {column.heading.unit}"


def _values(rows: pd.DataFrame, factor: str) -> list[Any]:
    """Return the values of a factor in order; without a factor, one."""
    if factor == SETTING:
        return list(dict.fromkeys(rows[factor]))
    if factor:
        return series.ordered_values(rows[factor])
    return [None]


def _at_value(rows: pd.DataFrame, factor: str, value: Any) -> pd.DataFrame:
    if factor:
        return rows[rows[factor] == value]
    return rows
