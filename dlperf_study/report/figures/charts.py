"""What all figures share: pages with panels, rows of categories, runs with their means, and the parts of steps."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.run_status import select_counted
from dlperf_study.report.figures.style import COMPUTATION, EXPOSED, INK, INPUT, SOFT, Width, colour, wrapped
from dlperf_study.report.formatting import Unit, fitting_unit

_ROW_INCHES, _LINE_INCHES, _BAR_ROW_INCHES, _MARGIN_INCHES = 0.21, 0.125, 0.22, 0.1
_NAME_INCHES, _HEADING_INCHES = 0.08, 0.06
_LETTERS_PER_INCH = 15.5
_MOST_OF_WIDTH = 0.45
_BAR_INCHES = 0.13


@dataclass(frozen=True)
class CategoryRows:
    """Rows at y = 0, 1, …, top first; ``headings`` name groups."""

    labels: Sequence[str]
    width: Width
    headings: Collection[int] = ()

    @property
    def are_below_names(self) -> bool:
        """Whether names are above their rows: left names are too wide."""
        longest = max(map(len, self.labels), default=0)
        return longest > _MOST_OF_WIDTH * self.width.inches * _LETTERS_PER_INCH

    @property
    def inches(self) -> float:
        """The height of all rows together."""
        margins = 2 * _MARGIN_INCHES + self._name_inches if self.are_below_names else self._row_inches
        return self._row_inches * (len(self.labels) - 1) + margins

    @property
    def bar_height(self) -> float:
        """The height of a bar, relative to the row distance."""
        return _BAR_INCHES / self._row_inches

    @property
    def _name_inches(self) -> float:
        return _LINE_INCHES * max(name.count("\n") + 1 for name in self._names)

    @property
    def _row_inches(self) -> float:
        if self.are_below_names:
            return _BAR_ROW_INCHES + self._name_inches
        return _ROW_INCHES

    @property
    def _names(self) -> list[str]:
        letters = round(self.width.inches * _LETTERS_PER_INCH)
        return [wrapped(label, letters) for label in self.labels]

    def draw(self, axes: Axes, *others: Axes) -> None:
        """Name the rows of axes; categories get no grid lines."""
        for panel in (axes, *others):
            panel.tick_params(axis="y", length=0)
            panel.grid(True, axis="x")
            panel.spines["left"].set_visible(False)
        if self.are_below_names:
            self._draw_above(axes)
        else:
            axes.set_yticks(range(len(self.labels)), self.labels)
            axes.set_ylim(len(self.labels) - 0.5, -0.5)
            for position in self.headings:
                axes.get_yticklabels()[position].set_fontweight("bold")

    def _draw_above(self, axes: Axes) -> None:
        axes.set_yticks([])
        bottom = len(self.labels) - 1 + _MARGIN_INCHES / self._row_inches
        axes.set_ylim(bottom, -(_MARGIN_INCHES + self._name_inches) / self._row_inches)
        # A name may be longer than its panel: it is above the next one, and it hides the grid below it.
        axes.set_zorder(1)
        axes.patch.set_visible(False)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        style: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "bottom", "bbox": box}
        for position, name in enumerate(self._names):
            is_heading = position in self.headings
            offset = _HEADING_INCHES
            if not is_heading:
                offset = -_NAME_INCHES
            y = position + offset / self._row_inches
            weight = "normal"
            if is_heading:
                weight = "bold"
            axes.text(0, y, name, fontweight=weight, **style).set_in_layout(False)


QUICK = "quick: not for publication"
AXIS_INCHES, QUICK_INCHES = 0.55, 0.25


def panels(
    dataset: Dataset, width: Width, rows: int, columns: int, height_inches: float, share_y: bool = False
) -> tuple[Drawing, list[Axes]]:
    """Return a drawing with a grid of panels."""
    drawing = labelled_page(dataset.plan.quick, width, height_inches)
    axes = drawing.subplots(rows, columns, squeeze=False, sharey=share_y)
    return drawing, list(axes.flat)


def labelled_page(is_quick: bool, width: Width, height_inches: float) -> Drawing:
    """Return a drawing without panels; a study in quick mode is labelled."""
    drawing = Drawing(figsize=(width.inches, height_inches + QUICK_INCHES * is_quick), layout="constrained")
    if is_quick:
        drawing.suptitle(QUICK, x=0.995, ha="right", color=SOFT)
    return drawing


def category_panel(dataset: Dataset, width: Width, labels: Sequence[str]) -> tuple[Drawing, Axes, CategoryRows]:
    """Return a drawing with one horizontal row per label."""
    category_rows = CategoryRows(labels, width)
    drawing, (axes,) = panels(dataset, width, 1, 1, AXIS_INCHES + category_rows.inches)
    category_rows.draw(axes)
    return drawing, axes, category_rows


def runs_and_means(dataset: Dataset, axes: Axes, rows: pd.DataFrame) -> None:
    """Draw runs, mean and interval at the ``y`` of each row.

    The dots of runs with background load that no mean includes are open.
    """
    throughput, runs = dataset.throughput_column, at_same_height(dataset.completed_runs, rows)
    is_counted = runs.index.isin(select_counted(dataset.runs).index)
    coloured = rows.assign(colour=rows["position"].map(colour))
    bounded_rows = coloured.dropna(subset=[f"{throughput}_low", f"{throughput}_high"])
    ends = (bounded_rows[f"{throughput}_low"], bounded_rows[f"{throughput}_high"])
    axes.hlines(bounded_rows["y"], *ends, color=bounded_rows["colour"], linewidth=3.5, alpha=0.35)
    means: dict[str, Any] = {"s": 81, "marker": "|", "linewidths": 1.6, "zorder": 2}
    axes.scatter(rows[throughput], rows["y"], color=coloured["colour"], **means)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.4, "color": INK, "alpha": 0.7}
    axes.plot(runs.loc[is_counted, throughput], runs.loc[is_counted, "y"], **dots)
    if not is_counted.all():
        axes.plot(runs.loc[~is_counted, throughput], runs.loc[~is_counted, "y"], markerfacecolor="none", **dots)
    axes.set_xlim(left=0)
    axes.set_xlabel(fitting_unit(throughput, rows[throughput]).axis)


def at_same_height(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``table``, each with the ``y`` of its configuration."""
    heights = dict(zip(rows["configuration_id"], rows["y"], strict=True))
    shown = table[table["configuration_id"].isin(heights)]
    return shown.assign(y=shown["configuration_id"].map(heights).astype(int))


def step_bars(axes: Axes, rows: pd.DataFrame, unit: Unit, height: float) -> None:
    """Draw each step in parts; noise never makes a bar longer."""
    step = rows["broken_down_step_seconds"] / unit.size
    exposed = rows["exposed_communication_seconds"].clip(lower=0) / unit.size
    waiting = rows["input_seconds"].fillna(0) / unit.size
    computation = step - exposed - waiting
    style: dict[str, Any] = {"y": rows["y"], "height": height}
    axes.barh(width=computation, color=COMPUTATION, label=COLUMNS["compute_seconds"].label, **style)
    if (waiting > 0).any():
        axes.barh(width=waiting, left=computation, color=INPUT, label=COLUMNS["input_seconds"].label, **style)
    start = computation + waiting
    axes.barh(width=exposed, left=start, color=EXPOSED, label=COLUMNS["exposed_communication_seconds"].label, **style)
    # No limit is set: bars hold the axis at 0, and it still has room for what is drawn beyond them.
    axes.margins(x=0.12)
    axes.set_xlabel(unit.axis)
