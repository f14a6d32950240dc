"""The figure on the drift of the machine: every run against the time at which it began."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from dlperf_study.analysis.drift import relative_rates
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import INK, SOFT, colour, marker, publication_style, quantity_axes

_CAPTION = (
    "One mark per run: its throughput relative to the geometric mean of its configuration, against the time at which "
    "it began."
)
_ROUNDS = (
    "Line: the mean of a round. Chance too puts rounds at different heights: the table below says which differ by "
    "more. Ratios are taken within rounds, so that what a round has in common cancels."
)
_NO_ROUNDS = "These runs were not measured in rounds, so nothing takes a drift of the machine out of their ratios."
_NO_TIMES = "No two runs of one configuration have a time at which they began."


def drift(dataset: Dataset) -> Iterator[Figure]:
    """Yield how much faster or slower than its configuration each run was, by the time at which it began."""
    runs = relative_rates(context.completed_runs(dataset))
    drawing = None
    if len(runs):
        with publication_style():
            drawing = _draw(dataset, runs)
    caption = f"{_CAPTION} {_ROUNDS if runs['round'].notna().any() else _NO_ROUNDS} {context.conditions(dataset)}"
    yield Figure("drift", "Drift of the machine", caption, drawing, _NO_TIMES)


def _draw(dataset: Dataset, runs: pd.DataFrame) -> Drawing:
    drawing, (axes,) = charts.panels(dataset, 1, 1, 2.4)
    minutes = (runs["begun"] - runs["begun"].min()).dt.total_seconds() / 60
    percent = 100 * runs["relative"]
    axes.axhline(0, color=SOFT, linewidth=0.6)
    for position, (name, indices) in enumerate(runs.groupby("round").groups.items()):
        times, values = minutes.loc[indices], percent.loc[indices]
        style: dict[str, Any] = {"color": colour(position), "marker": marker(position), "label": f"round {name}"}
        axes.plot(times, values, linestyle="none", **style)
        axes.plot([times.min(), times.max()], [values.mean()] * 2, color=colour(position), linewidth=1.4, alpha=0.5)
    no_round = runs["round"].isna()
    if no_round.any():
        axes.plot(minutes[no_round], percent[no_round], "x", color=INK, label="in no round")
    quantity_axes(axes)
    axes.set_xlabel("began after (min)")
    axes.set_ylabel("change of throughput (%)")
    charts.legend_below(drawing, axes, {})
    return drawing
