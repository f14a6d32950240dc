"""The figures of single pages: drift, history, self-test, memory and predictions."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.core.arrays import Floats
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import Measurement
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.drift import RoundEffect, relative_throughputs, round_effects
from dlperf_study.metrics.process_resources import HELD_COLUMNS
from dlperf_study.metrics.run_status import select_counted
from dlperf_study.prediction.curves import Curve
from dlperf_study.prediction.intervals import COVERAGE, interval, tested_score
from dlperf_study.prediction.node_ring import predicted_log_throughput, predicted_throughput
from dlperf_study.prediction.prediction import Prediction, select_predictions
from dlperf_study.report import context, formatting, series
from dlperf_study.report.figures import charts, line_charts
from dlperf_study.report.figures.figure import Figure, page_figure
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
    wrapped,
)
from dlperf_study.report.formatting import text_if
from dlperf_study.report.say import caption
from dlperf_study.report.tables import history_tables, page_tables, selftest_tables
from dlperf_study.report.tables.prediction_tables import own_cases, prediction_table, study_predictions
from dlperf_study.selftest.result import Comparison, SelftestResult

_NUMBER_INCHES = 0.2


def drift(dataset: Dataset) -> Iterator[Figure]:
    """Yield each run's deviation from its configuration by start time."""
    counted = select_counted(dataset.runs)
    runs, effects = (
        relative_throughputs(counted, dataset.throughput_column),
        round_effects(counted, dataset.throughput_column),
    )
    kind = "no_rounds"
    if effects:
        kind = "rounds"
    elif runs["round"].notna().any():
        kind = "incomplete"
    about = caption("figure-drift", has_disturbed=len(counted) < len(dataset.completed_runs))
    in_file = f"{about} {caption('figure-drift', kind)} {context.conditions(dataset)}"
    on_page = f"{about} {text_if(effects, caption('figure-drift', 'means'))}"
    draw = partial(_draw_drift, dataset, runs, effects)
    yield page_figure("drift", draw, in_file, on_page, page_tables.rounds(dataset), is_empty=runs.empty)


def _draw_drift(dataset: Dataset, runs: pd.DataFrame, effects: list[RoundEffect], width: Width) -> Drawing:
    drawing, (axes,) = charts.panels(dataset, width, 1, 1, 2.4)
    minutes = (runs["begun"] - runs["begun"].min()).dt.total_seconds() / 60
    percent = 100 * runs["relative"]
    axes.axhline(0, color=SOFT, linewidth=0.6)
    changes = {effect.round: 100 * (effect.log_throughput.factor - 1) for effect in effects}
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
        axes.plot(minutes[no_round], percent[no_round], "x", color=INK, label="in no round")
        line_charts.legend_below(drawing, [axes], width, named=list(map("round {}".format, middles)))
    axes.grid(True)
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


_PANEL_INCHES, _COLUMNS = 1.7, {"page": 2, "column": 1}


def history(measurements: Sequence[Measurement]) -> Figure:
    """Return the throughput of re-measured configurations, by measurement."""
    lines = _history_lines(measurements)
    draw, table = partial(_draw_history, measurements, lines), history_tables.dates(measurements)
    return page_figure("history", draw, caption("figure-history"), "", table, is_empty=not lines)


def _history_lines(measurements: Sequence[Measurement]) -> dict[str, Floats]:
    """Return [dates, 4] by configuration: position, mean throughput, and bounds or NaN."""
    points: dict[str, list[tuple[float, ...]]] = {}
    for position, measurement in enumerate(measurements):
        throughput = measurement.dataset.throughput_column
        rows = measurement.dataset.configurations.dropna(subset=throughput)
        columns = rows[["configuration_id", throughput, f"{throughput}_low", f"{throughput}_high"]]
        for configuration_id, *throughputs in columns.itertuples(index=False):
            points.setdefault(configuration_id, []).append((position, *throughputs))
    labels = series.configuration_labels(measurements[-1].dataset)
    return {labels[name]: np.array(line) for name, line in points.items() if name in labels and len(line) > 1}


def _draw_history(measurements: Sequence[Measurement], lines: dict[str, np.ndarray], width: Width) -> Drawing:
    parts = line_charts.parted(list(enumerate(lines.items())))
    names_inches = [line_charts.labels_inches((label for _, (label, _) in part), width) for part in parts]
    inches = max(_PANEL_INCHES, *names_inches)
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
        axes.set_xticks(range(len(measurements)), list(map(attrgetter("begun"), measurements)))
        if width is COLUMN:
            axes.tick_params(axis="x", rotation=30)
        axes.grid(True)
    for axes, part in zip(panels, parts, strict=False):
        labels = [line_charts.EndLabel(line[-1, 1] / line[0, 1], position, label) for position, (label, line) in part]
        line_charts.draw_end_labels(axes, labels, inches, width)
    for axes in panels[len(parts) :]:
        axes.remove()
    return drawing


RIGHT, WRONG = PALETTE[0], PALETTE[1]
_MARGIN_INCHES = 0.6


def ratios(result: SelftestResult) -> Figure:
    """Return a panel for each check with intervals."""
    drawn: dict[str, list[Comparison]] = {}
    for check in result.checks:
        for comparison in check.comparisons:
            if comparison.interval and comparison.significance:
                drawn.setdefault(check.name, []).append(comparison)
    table = selftest_tables.comparisons(result)
    draw, about = partial(_draw_ratios, drawn), text_if(drawn, caption("figure-ratios"))
    return page_figure("ratios", draw, about, "", table, is_empty=not drawn)


def _draw_ratios(drawn: dict[str, list[Comparison]], width: Width) -> Drawing:
    ordered, rows = {}, []
    for name, comparisons in drawn.items():
        ordered[name] = sorted(comparisons, key=lambda comparison: -comparison.true)
        rows.append(charts.CategoryRows(list(map(attrgetter("label"), ordered[name])), width))
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


#: The kinds of peaks: the first that all configurations have is drawn.
_PEAKS = ("peak_allocated_bytes", "peak_process_bytes")
MOST_DRAWN = 30


def memory(dataset: Dataset) -> Iterator[Figure]:
    """Yield the figure of what the ranks of configurations hold."""
    rows = dataset.configurations.dropna(subset=list(HELD_COLUMNS))
    peak = next((name for name in _PEAKS if len(rows) and rows[name].notna().all()), "")
    if not peak:
        yield page_figure("memory", None, "", "", None, is_empty=True)
        return
    drawn = rows.loc[rows[peak].astype(float).nlargest(MOST_DRAWN).index].sort_index()
    label, with_peak = COLUMNS[peak].label, dataset.configurations.dropna(subset=peak)
    unknown = with_peak.loc[with_peak[list(HELD_COLUMNS)].isna().any(axis=1), "configuration_id"]
    names = list(map(series.configuration_labels(dataset).__getitem__, unknown))
    more = text_if(len(names) > formatting.MOST_NAMED, f" and {len(names) - formatting.MOST_NAMED} more")
    on_page = caption(
        "figure-memory",
        peak=label[0].lower() + label[1:],
        rest=caption("figure-memory", peak),
        searched=drawn["largest_micro_batch"].notna().any(),
        count=len(rows),
        shown=MOST_DRAWN,
        unknown="; ".join(names[: formatting.MOST_NAMED]) + more,
    )
    draw, table = partial(_draw_memory, dataset, drawn, peak), page_tables.memory(dataset)
    yield page_figure("memory", draw, f"{on_page} {context.conditions(dataset)}", on_page, table)


def _draw_memory(dataset: Dataset, rows: pd.DataFrame, peak: str, width: Width) -> Drawing:
    labels = series.configuration_labels(dataset)
    drawing, axes, categories = charts.category_panel(
        dataset, width, [labels[name] for name in rows["configuration_id"]]
    )
    unit = formatting.fitting_unit(peak, rows[peak])
    end_of_parts = pd.Series(0.0, index=rows.index)
    style: dict[str, Any] = {"y": range(len(rows)), "height": categories.bar_height}
    for name, part_colour in zip(HELD_COLUMNS, PALETTE, strict=False):
        part = rows[name].astype(float) / unit.size
        axes.barh(width=part, left=end_of_parts, color=part_colour, label=COLUMNS[name].label, **style)
        end_of_parts = end_of_parts + part
    # Parts of several ranks may be more than one rank has at its peak.
    rest = (rows[peak].astype(float) / unit.size - end_of_parts).clip(lower=0)
    axes.barh(width=rest, left=end_of_parts, color=COMPUTATION, label="Rest of the peak", **style)
    axes.spines["left"].set_color(INK)
    for y, row in enumerate(rows.itertuples()):
        if not pd.isna(row.largest_micro_batch):
            end = getattr(row, peak) / unit.size
            largest = f"{text_if(pd.isna(row.too_large_batch), '≥ ')}{row.largest_micro_batch}"
            axes.annotate(largest, (end, y), (3, 0), textcoords="offset points", va="center")
    axes.margins(x=0.1)
    axes.set_xlabel(unit.axis)
    line_charts.legend_below(drawing, [axes], width)
    return drawing


MOST_SERIES, _SERIES_COLUMNS = 6, {"page": 3, "column": 2}
_SERIES_INCHES, _LETTERS = 1.9, {"page": 32, "column": 24}


def prediction(dataset: Dataset) -> Iterator[Figure]:
    """Yield the figure of predictions; of many series, the first."""
    results = study_predictions(dataset)
    drawn = list(select_predictions(results))
    facts: dict[str, Any] = {"has_cases": own_cases(dataset), "count": len(drawn), "shown": MOST_SERIES}
    on_page = caption("figure-prediction", **facts)
    draw, table = partial(_draw_predictions, dataset, drawn[:MOST_SERIES]), prediction_table(results)
    in_file = f"{on_page} {context.conditions(dataset)}"
    yield page_figure("prediction", draw, in_file, on_page, table, is_empty=not drawn)


def _draw_predictions(dataset: Dataset, predictions: Sequence[Prediction], width: Width) -> Drawing:
    columns = min(len(predictions), _SERIES_COLUMNS[width.name])
    rows = math.ceil(len(predictions) / columns)
    drawing, panels = charts.panels(dataset, width, rows, columns, rows * _SERIES_INCHES + 0.3)
    for axes, prediction in zip(panels, predictions, strict=False):
        _draw_prediction(axes, prediction)
        _draw_case(axes, dataset, prediction.curve)
        sizes = map(attrgetter("devices"), (*prediction.curve.all_points, *prediction.sizes))
        line_charts.device_axes(axes, list(sizes), logarithmic_y=False)
        axes.set_title(wrapped(prediction.curve.title, _LETTERS[width.name]))
        axes.set_xlabel("Devices")
    for axes in panels[len(predictions) :]:
        axes.set_visible(False)
    drawing.supylabel(f"Throughput of a device ({COLUMNS[dataset.throughput_column].unit})", fontsize=7)
    line_charts.legend_below(drawing, panels[: len(predictions)], width)
    return drawing


def _draw_prediction(axes: Axes, prediction: Prediction) -> None:
    curve, reference, tested = prediction.curve, prediction.reference, prediction.largest_tested
    last = max(tested, *(size.units for size in prediction.sizes))
    ideal: dict[str, Any] = {"color": SOFT, "linestyle": (0, (1, 1.5)), "label": line_charts.IDEAL}
    axes.axhline(reference.throughput / reference.devices, linewidth=0.9, **ideal)
    _draw_line(axes, curve, curve.points[0].units, tested, "-", "node ring")
    if last > tested:
        _draw_line(axes, curve, tested, last, (0, (4, 1.5)), "not tested")
    _draw_band(axes, curve, tested)
    for point in curve.all_points:
        bounds = point.log_throughput.factor_interval()
        if bounds:
            ends = (bounds.low / point.devices, bounds.high / point.devices)
            axes.vlines(point.devices, *ends, color=PALETTE[0], linewidth=1.4, alpha=0.6)
        face = "white"
        if bounds:
            face = PALETTE[0]
        axes.plot(point.devices, point.throughput / point.devices, "o", color=PALETTE[0], markerfacecolor=face)


def _draw_line(axes: Axes, curve: Curve, first: int, last: int, style: object, label: str) -> None:
    units = np.unique(np.geomspace(first, last, 40).round()).astype(int)
    devices = units * curve.devices_per_unit
    throughputs = [predicted_throughput(curve, int(count)) for count in units]
    axes.plot(devices, throughputs / devices, color=INK, linestyle=style, linewidth=1.0, label=label)


def _draw_band(axes: Axes, curve: Curve, tested: int) -> None:
    """Draw the intervals from the largest measured to the largest tested size."""
    if tested == curve.last.units:
        return
    # The band begins at what was measured.
    devices, lows, highs = [curve.last.devices], [curve.last.throughput], [curve.last.throughput]
    units = np.unique(np.geomspace(curve.last.units, tested, 24).round()).astype(int)
    for count in units[1:].tolist():
        score = tested_score(curve, count)
        if not isinstance(score, str):
            bounds = interval(curve, score, predicted_log_throughput(curve, count))
            devices.append(count * curve.devices_per_unit)
            lows.append(bounds.low)
            highs.append(bounds.high)
    low, high = np.array(lows) / devices, np.array(highs) / devices
    label = f"{100 * COVERAGE:g} %"
    axes.fill_between(devices, low, high, color=PALETTE[1], alpha=0.25, linewidth=0, label=label)


def _draw_case(axes: Axes, dataset: Dataset, curve: Curve) -> None:
    for case in own_cases(dataset):
        if (case.curve.configuration_id, case.curve.unit) == (curve.configuration_id, curve.unit):
            throughput = predicted_throughput(case.curve, case.target.units) / case.target.devices
            style: dict[str, Any] = {"color": PALETTE[2], "markerfacecolor": "white", "linestyle": "none"}
            axes.plot(case.target.devices, throughput, "D", label="from smaller sizes", **style)
