"""The figures that single pages have: the drift of the machine, a study on several dates, ratios of the self-test."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.core.arrays import Floats
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import Measurement
from dlperf_study.metrics.drift import RoundEffect, relative_rates, round_effects
from dlperf_study.metrics.outcome import select_counted
from dlperf_study.report import context
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.charts import CategoryRows
from dlperf_study.report.figures.figure import Figure, alt_text_of_table
from dlperf_study.report.figures.line_charts import EndLabel, draw_end_labels, labels_inches, legend_below, parted
from dlperf_study.report.figures.style import COLUMN, INK, PAGE, PALETTE, SOFT, Width, colour, marker, quantity_axes
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.history_tables import dates
from dlperf_study.report.tables.page_tables import rounds
from dlperf_study.report.tables.selftest_tables import comparisons as comparisons_table
from dlperf_study.selftest.result import Comparison, SelftestResult

_DRIFT_CAPTION = (
    "One mark per run: its throughput relative to the geometric mean of its configuration, against the time at which "
    "it began."
)
_ROUND_MEANS = "Line: the mean of a round, as in the table below."
_ROUNDS = (
    f"{_ROUND_MEANS} These means are over the rounds with a line; a round without all configurations has marks only. "
    "Ratios are taken within rounds, so that what a round has in common cancels."
)
_INCOMPLETE_ROUNDS = "No two rounds have the same configurations, so no round has a line."
_NO_ROUNDS = "These runs were not measured in rounds, so nothing takes a drift of the machine out of their ratios."
_NO_ROUND = "in no round"
#: How far apart the numbers of two rounds are at least.
_NUMBER_INCHES = 0.2
_NO_TIMES = "No two runs of one configuration have a time at which they began."


def drift(dataset: Dataset) -> Iterator[Figure]:
    """Yield how much faster or slower than its configuration each run was, by the time at which it began."""
    counted = select_counted(dataset.runs)
    runs, effects = relative_rates(counted, dataset.rate), round_effects(counted, dataset.rate)
    draw = partial(_draw_drift, dataset, runs, effects) if len(runs) else None
    on_rounds = _ROUNDS if effects else _INCOMPLETE_ROUNDS if runs["round"].notna().any() else _NO_ROUNDS
    about_marks = _DRIFT_CAPTION
    if len(counted) < len(dataset.completed_runs):
        about_marks += " Runs with background load are left out."
    caption = f"{about_marks} {on_rounds} {context.conditions(dataset)}"
    title, page_caption = "Drift of the machine", f"{about_marks} {_ROUND_MEANS if effects else ''}"
    alt = alt_text_of_table(title, rounds(dataset))
    yield Figure("drift", title, caption, draw, _NO_TIMES, page_caption, alt)


def _draw_drift(dataset: Dataset, runs: pd.DataFrame, effects: list[RoundEffect], width: Width) -> Drawing:
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


_HISTORY_CAPTION = (
    "Throughput of each measurement / the first one of the configuration; bars: 95 % CI over the runs of a "
    "measurement, without the variation between measurements."
)
#: The height of a panel at least, and how many are next to each other.
_PANEL_INCHES, _COLUMNS = 1.7, {"page": 2, "column": 1}
_NO_DATES = "No configuration was measured in two measurements."


def history(measurements: Sequence[Measurement]) -> Figure:
    """Return the throughput of the configurations that were measured on several dates, by date."""
    lines = _history_lines(measurements)
    draw = partial(_draw_history, measurements, lines) if lines else None
    title = "All measurements"
    alt = alt_text_of_table(title, dates(measurements)) if lines else ""
    return Figure("history", title, _HISTORY_CAPTION, draw, _NO_DATES, alt=alt)


def _history_lines(measurements: Sequence[Measurement]) -> dict[str, Floats]:
    """Return [dates, 4] by the label of each configuration with several dates.

    Position of the date, and mean rate with its bounds; bounds are NaN without an interval.
    """
    points: dict[str, list[tuple[float, ...]]] = {}
    for position, measurement in enumerate(measurements):
        rate = measurement.dataset.rate
        rows = measurement.dataset.configurations.dropna(subset=rate)
        columns = rows[["identity", rate, f"{rate}_low", f"{rate}_high"]]
        for identity, *rates in columns.itertuples(index=False):
            points.setdefault(identity, []).append((position, *rates))
    labels = configuration_labels(measurements[-1].dataset)
    return {labels[name]: np.array(line) for name, line in points.items() if name in labels and len(line) > 1}


def _draw_history(measurements: Sequence[Measurement], lines: dict[str, np.ndarray], width: Width) -> Drawing:
    parts = parted(list(enumerate(lines.items())))
    inches = _PANEL_INCHES
    for part in parts:
        inches = max(inches, labels_inches((label for _, (label, _) in part), width))
    columns = min(len(parts), _COLUMNS[width.name])
    rows = math.ceil(len(parts) / columns)
    drawing, panels = charts.panels(measurements[-1].dataset, width, rows, columns, rows * (inches + 0.4), share_y=True)
    drawing.supylabel("Relative throughput (×)", fontsize=7)
    for axes, part in zip(panels, parts, strict=False):
        axes.axhline(1, color=SOFT, linewidth=0.6)
        for order_in_panel, (position, (_, line)) in enumerate(part):
            # Bars of one date would hide each other.
            positions = line[:, 0] + 0.3 * ((order_in_panel + 0.5) / len(part) - 0.5)
            relative = line[:, 1:] / line[0, 1]
            axes.plot(positions, relative[:, 0], color=colour(position), marker=marker(position))
            axes.vlines(positions, relative[:, 1], relative[:, 2], color=colour(position))
        axes.set_xticks(range(len(measurements)), [measurement.begun for measurement in measurements])
        if width is COLUMN:
            axes.tick_params(axis="x", rotation=30)
        quantity_axes(axes)
    for axes, part in zip(panels, parts, strict=False):
        labels = [EndLabel(line[-1, 1] / line[0, 1], position, label) for position, (label, line) in part]
        draw_end_labels(axes, labels, inches, width)
    for axes in panels[len(parts) :]:
        axes.remove()
    return drawing


RIGHT, WRONG = PALETTE[0], PALETTE[1]
_MARGIN_INCHES = 0.6
_RATIOS_CAPTION = (
    "Dot and bar: the measured ratio of throughputs with its interval; black mark: the true ratio. Orange: the "
    "interval misses the truth. An interval of 95 % does so in one of 20 cases."
)


def ratios(result: SelftestResult) -> Figure:
    """Return a panel for each check with intervals: of the same program, and of injected slowdowns."""
    drawn: dict[str, list[Comparison]] = {}
    for check in result.checks:
        for comparison in check.comparisons:
            if comparison.interval and comparison.verdict:
                drawn.setdefault(check.name, []).append(comparison)
    empty = "No check has a ratio with an interval."
    if not drawn:
        return Figure("ratios", "Ratios and their truth", "", None, empty)
    title = "Ratios and their truth"
    return Figure(
        "ratios",
        title,
        _RATIOS_CAPTION,
        partial(_draw_ratios, drawn),
        empty,
        alt=alt_text_of_table(title, comparisons_table(result)),
    )


def _draw_ratios(drawn: dict[str, list[Comparison]], width: Width) -> Drawing:
    """Draw the panels of checks: next to each other on a page, below each other in a column of it."""
    ordered, rows = {}, []
    for name, comparisons in drawn.items():
        ordered[name] = sorted(comparisons, key=lambda comparison: -comparison.true)
        rows.append(CategoryRows([comparison.label for comparison in ordered[name]], width))
    heights = [_MARGIN_INCHES + row.inches for row in rows]
    if width is PAGE:
        drawing = Drawing(figsize=(width.inches, max(heights)), layout="constrained")
        panels = drawing.subplots(1, len(ordered), squeeze=False)
    else:
        drawing = Drawing(figsize=(width.inches, sum(heights)), layout="constrained")
        panels = drawing.subplots(len(ordered), 1, squeeze=False, height_ratios=heights)
    for axes, (name, comparisons), row in zip(panels.flat, ordered.items(), rows, strict=True):
        row.draw(axes)
        for y, comparison in enumerate(comparisons):
            bar_colour = RIGHT if comparison.holds_truth else WRONG
            if comparison.interval:
                axes.plot(comparison.interval, [y, y], color=bar_colour, linewidth=3, alpha=0.4)
            axes.plot(comparison.measured, y, marker="o", color=bar_colour)
            axes.plot(comparison.true, y, marker="|", markersize=9, markeredgewidth=1.3, color=INK)
        axes.set_title(name)
        axes.set_xlabel("Throughput / reference (×)")
    return drawing
