"""The figure on the drift of the machine: every run against the time at which it began."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from dlperf_study.analysis.drift import RoundEffect, relative_rates, round_effects
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.alt_text import alt_text_of_table
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import INK, SOFT, colour, marker, publication_style, quantity_axes
from dlperf_study.report.tables.quality_tables import rounds

_CAPTION = (
    "One mark per run: its throughput relative to the geometric mean of its configuration, against the time at which "
    "it began."
)
_MEANS = "Line: the mean of a round, as in the table below."
_ROUNDS = (
    f"{_MEANS} It says what differs by more than chance. These means are "
    "over the rounds with a line; a round that lacks configurations has marks only. Ratios are taken within rounds, so "
    "that what a round has in common cancels."
)
_INCOMPLETE_ROUNDS = "No two rounds have the same configurations, so no round has a line."
_NO_ROUNDS = "These runs were not measured in rounds, so nothing takes a drift of the machine out of their ratios."
_NO_TIMES = "No two runs of one configuration have a time at which they began."


def drift(dataset: Dataset) -> Iterator[Figure]:
    """Yield how much faster or slower than its configuration each run was, by the time at which it began."""
    completed = context.completed_runs(dataset)
    runs, effects = relative_rates(completed), round_effects(completed)
    drawing = None
    if len(runs):
        with publication_style():
            drawing = _draw(dataset, runs, effects)
    caption = f"{_CAPTION} {_on_rounds(runs, effects)} {context.conditions(dataset)}"
    title, page_caption = "Drift of the machine", f"{_CAPTION} {_MEANS if effects else ''}"
    alt = alt_text_of_table(title, rounds(dataset))
    yield Figure("drift", title, caption, drawing, _NO_TIMES, page_caption, alt)


def _on_rounds(runs: pd.DataFrame, effects: list[RoundEffect]) -> str:
    """Return the caption's sentences on rounds."""
    if effects:
        return _ROUNDS
    return _INCOMPLETE_ROUNDS if runs["round"].notna().any() else _NO_ROUNDS


def _draw(dataset: Dataset, runs: pd.DataFrame, effects: list[RoundEffect]) -> Drawing:
    drawing, (axes,) = charts.panels(dataset, 1, 1, 2.4)
    minutes = (runs["begun"] - runs["begun"].min()).dt.total_seconds() / 60
    percent = 100 * runs["relative"]
    axes.axhline(0, color=SOFT, linewidth=0.6)
    changes = {effect.round: 100 * (effect.log_rate.factor - 1) for effect in effects}
    for position, (name, indices) in enumerate(runs.groupby("round").groups.items()):
        times, values = minutes.loc[indices], percent.loc[indices]
        style: dict[str, Any] = {"color": colour(position), "marker": marker(position), "label": f"round {name}"}
        axes.plot(times, values, linestyle="none", **style)
        if name in changes:
            ends = [times.min(), times.max()]
            axes.plot(ends, [changes[name]] * 2, color=colour(position), linewidth=1.4, alpha=0.5)
    no_round = runs["round"].isna()
    if no_round.any():
        axes.plot(minutes[no_round], percent[no_round], "x", color=INK, label="in no round")
    quantity_axes(axes)
    axes.set_xlabel("began after (min)")
    axes.set_ylabel("change of throughput (%)")
    charts.legend_below(drawing, axes, {})
    return drawing
