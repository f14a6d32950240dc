"""What all figures share: pages with panels, runs with their means, and the parts of steps."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.context import completed_runs
from dlperf_study.report.figures.category_rows import CategoryRows
from dlperf_study.report.figures.style import COMPUTATION, EXPOSED, INK, INPUT, SOFT, Width, colour
from dlperf_study.report.formatting import Unit, unit_of

QUICK = "quick: not for publication"
#: The height of the x axis with its label and the title of a panel, and of the label of a quick study.
AXIS_INCHES, QUICK_INCHES = 0.55, 0.25


def panels(
    dataset: Dataset, width: Width, rows: int, columns: int, height_inches: float, share_y: bool = False
) -> tuple[Drawing, list[Axes]]:
    """Return a drawing with a grid of panels."""
    drawing = page(dataset, width, height_inches)
    axes = drawing.subplots(rows, columns, squeeze=False, sharey=share_y)
    return drawing, list(axes.flat)


def page(dataset: Dataset, width: Width, height_inches: float) -> Drawing:
    """Return a drawing without panels; that of a quick study says that it is one."""
    return labelled_page(dataset.plan.quick, width, height_inches)


def labelled_page(is_quick: bool, width: Width, height_inches: float) -> Drawing:
    """Return a drawing without panels, with the label of a quick study if its numbers are of one."""
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
    """Draw rates at the ``y`` of each row: runs as dots, a mark for their mean, a bar for its interval."""
    rate, runs = dataset.rate, at_same_height(completed_runs(dataset), rows)
    coloured = rows.assign(colour=rows["position"].map(colour))
    with_interval = coloured.dropna(subset=[f"{rate}_low", f"{rate}_high"])
    ends = (with_interval[f"{rate}_low"], with_interval[f"{rate}_high"])
    axes.hlines(with_interval["y"], *ends, color=with_interval["colour"], linewidth=3.5, alpha=0.35)
    means: dict[str, Any] = {"s": 81, "marker": "|", "linewidths": 1.6, "zorder": 2}
    axes.scatter(rows[rate], rows["y"], color=coloured["colour"], **means)
    axes.plot(runs[rate], runs["y"], linestyle="none", marker="o", markersize=2.4, color=INK, alpha=0.7)
    axes.set_xlim(left=0)
    axes.set_xlabel(unit_of(rate, rows[rate]).axis)


def at_same_height(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``table`` about the configurations ``rows``, each with the ``y`` of its configuration."""
    heights = dict(zip(rows["identity"], rows["y"], strict=True))
    shown = table[table["identity"].isin(heights)]
    return shown.assign(y=shown["identity"].map(heights).astype(int))


def step_bars(axes: Axes, rows: pd.DataFrame, unit: Unit, height: float) -> None:
    """Draw each step at the ``y`` of its row: computation, waiting for its batch, exposed communication.

    A bar is as long as its step, also where noise made the computation alone take longer than the step.
    """
    step, exposed = rows["step_seconds"] / unit.size, rows["exposed_seconds"].clip(lower=0) / unit.size
    waiting = rows["input_seconds"].fillna(0) / unit.size
    computation = step - exposed - waiting
    style: dict[str, Any] = {"y": rows["y"], "height": height}
    axes.barh(width=computation, color=COMPUTATION, label=COLUMNS["computation_seconds"].label, **style)
    if (waiting > 0).any():
        axes.barh(width=waiting, left=computation, color=INPUT, label=COLUMNS["input_seconds"].label, **style)
    start = computation + waiting
    axes.barh(width=exposed, left=start, color=EXPOSED, label=COLUMNS["exposed_seconds"].label, **style)
    # No limit is set: bars hold the axis at 0, and it still has room for what is drawn beyond them.
    axes.margins(x=0.12)
    axes.set_xlabel(unit.axis)
