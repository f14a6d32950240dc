"""The drawing of every step of the runs of a model, a panel for each configuration."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.report.figures import charts, drawings, style
from dlperf_study.report.series import Series, devices_label

_COLUMNS, _LETTERS = {"page": 3, "column": 2}, {"page": 36, "column": 24}
_LINE_INCHES, _PANEL_INCHES = 0.125, 1.05
STEP_WINDOWS = ("warmup", "training", "left_out")
MOST_PANELS, STEP_PIECES = 24, 60
_PIECES = {"page": STEP_PIECES, "column": STEP_PIECES // 2}
STEP_TICKS = 4
#: From this ratio of the longest to the shortest step on, the axis is marked at powers of two.
_WIDE = 4


def steps(dataset: Dataset, series: list[Series], width: style.Width) -> Drawing | None:
    """Draw every step of each run relative to its median."""
    rows = steps_rows(dataset, series)
    if rows.empty:
        return None
    titles = []
    for row in rows.itertuples():
        titles.append("\n".join(filter(None, (style.wrapped(row.series, _LETTERS[width.name]), devices_label(row)))))
    columns = _COLUMNS[width.name]
    panel_rows = math.ceil(len(rows) / columns)
    height = 0.4 + panel_rows * (_PANEL_INCHES + _LINE_INCHES * max(title.count("\n") + 1 for title in titles))
    drawing, axes = charts.panels(dataset, width, panel_rows, columns, height, share_y=True)
    runs = _relative_runs(dataset, tuple(rows["identity"]))
    for panel, title, of_configuration in zip(axes, titles, runs, strict=False):
        panel.set_title(title, fontweight="normal")
        _draw_steps(panel, of_configuration, _PIECES[width.name])
    for panel in axes[: len(rows)]:
        _relative_axes(panel)
    for panel in axes[len(rows) :]:
        panel.set_visible(False)
    drawing.supxlabel("Step (0 = first measured)", fontsize=7)
    drawing.supylabel("Step time / median", fontsize=7)
    return drawing


def steps_rows(dataset: Dataset, series: list[Series]) -> pd.DataFrame:
    """Return the rows of the panels; of many, the most varying."""
    rows = drawings.configuration_rows(dataset, series).dropna(subset="step_seconds")
    most = drawings.most_of_model(dataset, MOST_PANELS)
    if len(rows) <= most:
        return rows
    variations = dataset.completed_runs.groupby("identity")["step_variation"].max()
    most_varying = rows["identity"].map(variations).fillna(0.0).nlargest(most)
    return rows[rows.index.isin(most_varying.index)]


def _draw_steps(panel: Axes, runs: list[pd.Series], pieces: int) -> None:
    first_step = min((run.index.min() for run in runs), default=0)
    if first_step < 0:
        panel.axvspan(first_step - 0.5, -0.5, color=style.FAINT, linewidth=0)
    for position, run in enumerate(_thinned(run, pieces) for run in runs):
        panel.plot(run.index, run.to_numpy(), linewidth=0.8, color=style.colour(position))


def _thinned(run: pd.Series, count: int) -> pd.Series:
    """Return the shortest and the longest step of each piece."""
    if len(run) <= 2 * count:
        return run
    pieces = pd.Series(run.to_numpy()).groupby(np.arange(len(run)) * count // len(run))
    return run.iloc[np.union1d(pieces.idxmin(), pieces.idxmax())]


# Both widths show the same runs.
@kept_with_dataset
def _relative_runs(dataset: Dataset, identities: tuple[str, ...]) -> list[list[pd.Series]]:
    all_steps = dataset.select_steps(identities)
    is_shown = all_steps["window"].isin(STEP_WINDOWS)
    steps_by_identity = dict(list(all_steps[is_shown].groupby("identity", observed=True)))
    warmups = dataset.configurations.set_index("identity")["warmup_steps"]
    return [list(_relative_steps(steps_by_identity[name], warmups[name])) for name in identities]


def _relative_steps(steps: pd.DataFrame, warmup_steps: Any) -> Iterator[pd.Series]:
    """Yield, per run, step times over the median measured step."""
    for _, run in steps.groupby("repetition"):
        counts = run["window"] == "training"
        if is_missing(warmup_steps):
            # Ingested logs do not say how many steps came before the first one that counts.
            index = run["step"] - run.loc[counts, "step"].min()
        else:
            is_warmup = run["window"] == "warmup"
            index = run["step"] - is_warmup * is_warmup.groupby(run["rank"]).sum().max()
        slowest = run.groupby(index)["seconds"].max()
        yield slowest / run[counts].groupby(index[counts])["seconds"].max().median()


def _relative_axes(axes: Axes) -> None:
    style.quantity_axes(axes)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [0.25, 0.5, 1, 2, 4, 8, 16] if high > _WIDE * low else _ticks_with_one(low, high)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # Ingested logs count to hundreds of thousands, and the panels are narrow.
    axes.xaxis.set_major_locator(MaxNLocator(STEP_TICKS, integer=True))


def _ticks_with_one(low: float, high: float) -> list[float]:
    """Return round ticks between two limits, including 1."""
    ticks = MaxNLocator(5).tick_values(low, high)
    distance = ticks[1] - ticks[0]
    return sorted([1.0, *(float(tick) for tick in ticks if abs(tick - 1) > distance / 2)])
