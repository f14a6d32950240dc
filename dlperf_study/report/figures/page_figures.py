"""The figures of single pages: drift, history, self-test and memory."""

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
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.drift import RoundEffect, relative_rates, round_effects
from dlperf_study.metrics.outcome import select_counted
from dlperf_study.metrics.process_resources import HELD_COLUMNS
from dlperf_study.report import context, formatting, series
from dlperf_study.report.figures import charts, figure, line_charts
from dlperf_study.report.figures.style import (
    COLUMN,
    COMPUTATION,
    INK,
    PAGE,
    PALETTE,
    SOFT,
    Width,
    colour,
    marker,
    quantity_axes,
)
from dlperf_study.report.tables import history_tables, page_tables, selftest_tables
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
_NUMBER_INCHES = 0.2
_NO_TIMES = "No two runs of one configuration have a time at which they began."


def drift(dataset: Dataset) -> Iterator[figure.Figure]:
    """Yield each run's deviation from its configuration by start time."""
    counted = select_counted(dataset.runs)
    runs, effects = relative_rates(counted, dataset.rate), round_effects(counted, dataset.rate)
    draw = None
    if len(runs):
        draw = partial(_draw_drift, dataset, runs, effects)
    on_rounds = _ROUNDS
    if not effects:
        on_rounds = _NO_ROUNDS
        if runs["round"].notna().any():
            on_rounds = _INCOMPLETE_ROUNDS
    about_marks = _DRIFT_CAPTION
    if len(counted) < len(dataset.completed_runs):
        about_marks += " Runs with background load are left out."
    caption = f"{about_marks} {on_rounds} {context.conditions(dataset)}"
    title, page_caption = "Drift of the machine", f"{about_marks} {_ROUND_MEANS if effects else ''}"
    alt = figure.alt_text_of_table(title, page_tables.rounds(dataset))
    yield figure.Figure("drift", title, caption, draw, _NO_TIMES, page_caption, alt)


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
        line_charts.legend_below(drawing, [axes], width, named=[f"round {name}" for name in middles])
    quantity_axes(axes)
    axes.set_xlabel("Began after (min)")
    axes.set_ylabel("Change of throughput (%)")
    _name_rounds(axes, middles, width)
    return drawing


def _name_rounds(axes: Axes, middles: dict[str, float], width: Width) -> None:
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
_PANEL_INCHES, _COLUMNS = 1.7, {"page": 2, "column": 1}
_NO_DATES = "No configuration was measured in two measurements."


def history(measurements: Sequence[Measurement]) -> figure.Figure:
    """Return the throughput of re-measured configurations, by measurement."""
    lines = _history_lines(measurements)
    draw = None
    if lines:
        draw = partial(_draw_history, measurements, lines)
    title = "All measurements"
    alt = ""
    if lines:
        alt = figure.alt_text_of_table(title, history_tables.dates(measurements))
    return figure.Figure("history", title, _HISTORY_CAPTION, draw, _NO_DATES, alt=alt)


def _history_lines(measurements: Sequence[Measurement]) -> dict[str, Floats]:
    """Return [dates, 4] by configuration: position, mean rate, and bounds or NaN."""
    points: dict[str, list[tuple[float, ...]]] = {}
    for position, measurement in enumerate(measurements):
        rate = measurement.dataset.rate
        rows = measurement.dataset.configurations.dropna(subset=rate)
        columns = rows[["identity", rate, f"{rate}_low", f"{rate}_high"]]
        for identity, *rates in columns.itertuples(index=False):
            points.setdefault(identity, []).append((position, *rates))
    labels = series.configuration_labels(measurements[-1].dataset)
    return {labels[name]: np.array(line) for name, line in points.items() if name in labels and len(line) > 1}


def _draw_history(measurements: Sequence[Measurement], lines: dict[str, np.ndarray], width: Width) -> Drawing:
    parts = line_charts.parted(list(enumerate(lines.items())))
    inches = _PANEL_INCHES
    for part in parts:
        inches = max(inches, line_charts.labels_inches((label for _, (label, _) in part), width))
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
        labels = [line_charts.EndLabel(line[-1, 1] / line[0, 1], position, label) for position, (label, line) in part]
        line_charts.draw_end_labels(axes, labels, inches, width)
    for axes in panels[len(parts) :]:
        axes.remove()
    return drawing


RIGHT, WRONG = PALETTE[0], PALETTE[1]
_MARGIN_INCHES = 0.6
_RATIOS_CAPTION = (
    "Dot and bar: the measured ratio of throughputs with its interval; black mark: the true ratio. Orange: the "
    "interval misses the truth. An interval of 95 % does so in one of 20 cases."
)


def ratios(result: SelftestResult) -> figure.Figure:
    """Return a panel for each check with intervals."""
    drawn: dict[str, list[Comparison]] = {}
    for check in result.checks:
        for comparison in check.comparisons:
            if comparison.interval and comparison.verdict:
                drawn.setdefault(check.name, []).append(comparison)
    empty = "No check has a ratio with an interval."
    if not drawn:
        return figure.Figure("ratios", "Ratios and their truth", "", None, empty)
    title = "Ratios and their truth"
    return figure.Figure(
        "ratios",
        title,
        _RATIOS_CAPTION,
        partial(_draw_ratios, drawn),
        empty,
        alt=figure.alt_text_of_table(title, selftest_tables.comparisons(result)),
    )


def _draw_ratios(drawn: dict[str, list[Comparison]], width: Width) -> Drawing:
    ordered, rows = {}, []
    for name, comparisons in drawn.items():
        ordered[name] = sorted(comparisons, key=lambda comparison: -comparison.true)
        rows.append(charts.CategoryRows([comparison.label for comparison in ordered[name]], width))
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
            bar_colour = WRONG
            if comparison.holds_truth:
                bar_colour = RIGHT
            if comparison.interval:
                axes.plot(comparison.interval, [y, y], color=bar_colour, linewidth=3, alpha=0.4)
            axes.plot(comparison.measured, y, marker="o", color=bar_colour)
            axes.plot(comparison.true, y, marker="|", markersize=9, markeredgewidth=1.3, color=INK)
        axes.set_title(name)
        axes.set_xlabel("Throughput / reference (×)")
    return drawing


MEMORY_TITLE = "What the memory of a rank holds"
#: The kinds of peaks, the first that all configurations have is drawn; and what the rest of each is.
_PEAKS = {
    "peak_allocated_bytes": "activations and buffers",
    "peak_process_bytes": "activations, buffers, and what a process needs without training, such as its libraries",
}
MOST_DRAWN = 30
_REST = "Rest of the peak"
_NO_PEAKS = "No configuration has both a peak and what its ranks hold."


def memory(dataset: Dataset) -> Iterator[figure.Figure]:
    """Yield the figure of what the ranks of configurations hold."""
    rows = dataset.configurations.dropna(subset=list(HELD_COLUMNS))
    peak = next((name for name in _PEAKS if len(rows) and rows[name].notna().all()), "")
    if not peak:
        yield figure.Figure("memory", MEMORY_TITLE, "", None, _NO_PEAKS)
        return
    drawn = rows.loc[rows[peak].astype(float).nlargest(MOST_DRAWN).index].sort_index()
    label, searched = COLUMNS[peak].label, ""
    if drawn["largest_micro_batch"].notna().any():
        searched = " At its end: the largest micro-batch that fits; ≥: none larger was tried."
    caption = (
        "Each part is that of the rank with most of it, as held after an update; "
        f"the bar ends at the {label[0].lower()}{label[1:]}, and the rest is {_PEAKS[peak]}.{searched}"
    )
    omission = ""
    if len(rows) > MOST_DRAWN:
        omission = f" The {MOST_DRAWN} of {len(rows)} with the highest peaks are shown."
    draw, alt = (
        partial(_draw_memory, dataset, drawn, peak),
        figure.alt_text_of_table(MEMORY_TITLE, page_tables.memory(dataset)),
    )
    on_page = f"{caption}{omission}{_without_bar(dataset, peak)}"
    yield figure.Figure(
        "memory", MEMORY_TITLE, f"{on_page} {context.conditions(dataset)}", draw, _NO_PEAKS, on_page, alt
    )


def _without_bar(dataset: Dataset, peak: str) -> str:
    rows, labels = dataset.configurations.dropna(subset=peak), series.configuration_labels(dataset)
    names = []
    for row in rows[rows[list(HELD_COLUMNS)].isna().any(axis=1)].itertuples():
        names.append(labels[row.identity])
    if not names:
        return ""
    more = ""
    if len(names) > formatting.MOST_NAMED:
        more = f" and {len(names) - formatting.MOST_NAMED} more"
    named = f"{'; '.join(names[: formatting.MOST_NAMED])}{more}"
    return f" Without a bar, as it is not known what their ranks hold (the table says why): {named}."


def _draw_memory(dataset: Dataset, rows: pd.DataFrame, peak: str, width: Width) -> Drawing:
    labels = series.configuration_labels(dataset)
    drawing, axes, categories = charts.category_panel(dataset, width, [labels[name] for name in rows["identity"]])
    unit = formatting.fitting_unit(peak, rows[peak])
    end_of_parts = pd.Series(0.0, index=rows.index)
    style: dict[str, Any] = {"y": range(len(rows)), "height": categories.bar_height}
    for name, part_colour in zip(HELD_COLUMNS, PALETTE, strict=False):
        part = rows[name].astype(float) / unit.size
        axes.barh(width=part, left=end_of_parts, color=part_colour, label=COLUMNS[name].label, **style)
        end_of_parts = end_of_parts + part
    # Parts of several ranks may be more than one rank has at its peak.
    rest = (rows[peak].astype(float) / unit.size - end_of_parts).clip(lower=0)
    axes.barh(width=rest, left=end_of_parts, color=COMPUTATION, label=_REST, **style)
    axes.spines["left"].set_color(INK)
    for y, row in enumerate(rows.itertuples()):
        if not pd.isna(row.largest_micro_batch):
            end = getattr(row, peak) / unit.size
            at_least = ""
            if pd.isna(row.too_large_batch):
                at_least = "≥ "
            axes.annotate(
                f"{at_least}{row.largest_micro_batch}", (end, y), (3, 0), textcoords="offset points", va="center"
            )
    axes.margins(x=0.1)
    axes.set_xlabel(unit.axis)
    line_charts.legend_below(drawing, [axes], width)
    return drawing
