"""The figure on the drift of the machine: every run against the time at which it began."""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.analysis.drift import RoundEffect, relative_rates, round_effects
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.alt_text import alt_text_of_table
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.direct_labels import legend_below
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import INK, SOFT, Width, colour, marker, quantity_axes
from dlperf_study.report.tables.quality_tables import rounds

_CAPTION = (
    "One mark per run: its throughput relative to the geometric mean of its configuration, against the time at which "
    "it began."
)
_MEANS = "Line: the mean of a round, as in the table below."
_ROUNDS = (
    f"{_MEANS} It says what differs by more than chance. These means are over the rounds with a line; a round without "
    "all configurations has marks only. Ratios are taken within rounds, so that what a round has in common cancels."
)
_INCOMPLETE_ROUNDS = "No two rounds have the same configurations, so no round has a line."
_NO_ROUNDS = "These runs were not measured in rounds, so nothing takes a drift of the machine out of their ratios."
_NO_ROUND = "in no round"
#: How far apart the numbers of two rounds are at least.
_NUMBER_INCHES = 0.2
_NO_TIMES = "No two runs of one configuration have a time at which they began."


def drift(dataset: Dataset) -> Iterator[Figure]:
    """Yield how much faster or slower than its configuration each run was, by the time at which it began."""
    completed = context.completed_runs(dataset)
    runs, effects = relative_rates(completed), round_effects(completed)
    draw = partial(_draw, dataset, runs, effects) if len(runs) else None
    on_rounds = _ROUNDS if effects else _INCOMPLETE_ROUNDS if runs["round"].notna().any() else _NO_ROUNDS
    caption = f"{_CAPTION} {on_rounds} {context.conditions(dataset)}"
    title, page_caption = "Drift of the machine", f"{_CAPTION} {_MEANS if effects else ''}"
    alt = alt_text_of_table(title, rounds(dataset))
    yield Figure("drift", title, caption, draw, _NO_TIMES, page_caption, alt)


def _draw(dataset: Dataset, runs: pd.DataFrame, effects: list[RoundEffect], width: Width) -> Drawing:
    drawing, (axes,) = charts.panels(dataset, width, 1, 1, 2.4)
    minutes = (runs["begun"] - runs["begun"].min()).dt.total_seconds() / 60
    percent = 100 * runs["relative"]
    axes.axhline(0, color=SOFT, linewidth=0.6)
    changes = {effect.round: 100 * (effect.log_rate.factor - 1) for effect in effects}
    middles: dict[str, float] = {}
    for position, (name, indices) in enumerate(runs.groupby("round").groups.items()):
        times, values = minutes.loc[indices], percent.loc[indices]
        middles[f"{name:g}"] = float(times.median())
        style: dict[str, Any] = {"color": colour(position), "marker": marker(position), "label": f"round {name:g}"}
        axes.plot(times, values, linestyle="none", **style)
        if name in changes:
            ends = [times.min(), times.max()]
            axes.plot(ends, [changes[name]] * 2, color=colour(position), linewidth=1.4, alpha=0.5)
    no_round = runs["round"].isna()
    if no_round.any():
        axes.plot(minutes[no_round], percent[no_round], "x", color=INK, label=_NO_ROUND)
        legend_below(drawing, [axes], width, named=[f"round {name}" for name in middles])
    quantity_axes(axes)
    axes.set_xlabel("Began after (min)")
    axes.set_ylabel("Change of throughput (%)")
    _name_rounds(axes, middles, width)
    return drawing


def _name_rounds(axes: Axes, middles: dict[str, float], width: Width) -> None:
    """Number the rounds above the panel, each where its runs are, as far as the numbers leave each other room."""
    low, high = axes.get_xlim()
    distance = (high - low) * _NUMBER_INCHES / width.inches
    shown: dict[str, float] = {}
    for name, middle in sorted(middles.items(), key=itemgetter(1)):
        if not shown or middle - max(shown.values()) >= distance:
            shown[name] = middle
    if shown:
        top = axes.secondary_xaxis("top")
        top.set_xticks(list(shown.values()), list(shown))
        top.set_xlabel("Round")
        top.tick_params(length=0)
        top.spines["top"].set_visible(False)
