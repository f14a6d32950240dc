"""The figure of a prediction: measured sizes, the curve through them, and the bands of what is predicted."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.prediction.curves import Curve
from dlperf_study.prediction.intervals import COVERAGE, interval, tested_score
from dlperf_study.prediction.node_ring import predicted_log_rate, predicted_rate
from dlperf_study.prediction.prediction import Prediction, select_predictions
from dlperf_study.report import context
from dlperf_study.report.figures import charts, figure
from dlperf_study.report.figures.line_charts import IDEAL, device_axes, legend_below
from dlperf_study.report.figures.style import INK, PALETTE, SOFT, Width, wrapped
from dlperf_study.report.predictions import own_cases, study_predictions
from dlperf_study.report.tables.prediction_tables import prediction_table

MOST_SERIES, _COLUMNS = 6, {"page": 3, "column": 2}
_PANEL_INCHES, _LETTERS = 1.9, {"page": 32, "column": 24}
_POINTS = "Throughput of one device against the number of devices. Points: measured, with 95 % intervals."
_LINE = (
    "Line: the ring of nodes through the smallest and the largest of them. Band: 90 % interval of what was not "
    "measured, as far as enough laboratories test it; beyond, the line is dashed."
)
_IDEAL = "Dotted: every device as fast as at the least size."
_NOTHING = "No series has a second size, so nothing can be predicted."
_CASES = " Diamond: the largest size as the smaller ones predict it."


def prediction(dataset: Dataset) -> Iterator[figure.Figure]:
    """Yield the figure of predictions; of many series, the first."""
    results = study_predictions(dataset)
    drawn = list(select_predictions(results))
    draw = None
    if drawn:
        draw = partial(_draw, dataset, drawn[:MOST_SERIES])
    explanation = f"{_POINTS} {_LINE} {_IDEAL}{_CASES if own_cases(dataset) else ''}"
    omission = ""
    if len(drawn) > MOST_SERIES:
        omission = f" The first {MOST_SERIES} of {len(drawn)} series are shown."
    title, caption = "Predicted sizes", f"{explanation}{omission} {context.conditions(dataset)}"
    alt = figure.alt_text_of_table(title, prediction_table(results))
    yield figure.Figure("prediction", title, caption, draw, _NOTHING, f"{explanation}{omission}", alt)


def _draw(dataset: Dataset, predictions: Sequence[Prediction], width: Width) -> Drawing:
    columns = min(len(predictions), _COLUMNS[width.name])
    rows = math.ceil(len(predictions) / columns)
    drawing, panels = charts.panels(dataset, width, rows, columns, rows * _PANEL_INCHES + 0.3)
    for axes, prediction in zip(panels, predictions, strict=False):
        _draw_prediction(axes, prediction)
        _draw_case(axes, dataset, prediction.curve)
        measured = [point.devices for point in prediction.curve.all_points]
        device_axes(axes, [*measured, *(size.devices for size in prediction.sizes)], logarithmic_y=False)
        axes.set_title(wrapped(prediction.curve.title, _LETTERS[width.name]))
        axes.set_xlabel("Devices")
    for axes in panels[len(predictions) :]:
        axes.set_visible(False)
    drawing.supylabel(f"Throughput of a device ({COLUMNS[dataset.rate].unit})", fontsize=7)
    legend_below(drawing, panels[: len(predictions)], width)
    return drawing


def _draw_prediction(axes: Axes, prediction: Prediction) -> None:
    curve, reference, tested = prediction.curve, prediction.reference, prediction.largest_tested
    last = max(tested, *(size.units for size in prediction.sizes))
    axes.axhline(reference.rate / reference.devices, color=SOFT, linestyle=(0, (1, 1.5)), linewidth=0.9, label=IDEAL)
    _draw_line(axes, curve, curve.points[0].units, tested, "-", "node ring")
    if last > tested:
        _draw_line(axes, curve, tested, last, (0, (4, 1.5)), "not tested")
    _draw_band(axes, curve, tested)
    for point in curve.all_points:
        bounds = point.log_rate.factor_interval()
        if bounds:
            ends = (bounds.low / point.devices, bounds.high / point.devices)
            axes.vlines(point.devices, *ends, color=PALETTE[0], linewidth=1.4, alpha=0.6)
        face = "white"
        if bounds:
            face = PALETTE[0]
        axes.plot(point.devices, point.rate / point.devices, "o", color=PALETTE[0], markerfacecolor=face)


def _draw_line(axes: Axes, curve: Curve, first: int, last: int, style: object, label: str) -> None:
    units = np.unique(np.geomspace(first, last, 40).round()).astype(int)
    devices = units * curve.devices_per_unit
    rates = [predicted_rate(curve, int(count)) for count in units]
    axes.plot(devices, rates / devices, color=INK, linestyle=style, linewidth=1.0, label=label)


def _draw_band(axes: Axes, curve: Curve, tested: int) -> None:
    """Draw the intervals from the largest measured to the largest tested size."""
    if tested == curve.last.units:
        return
    # The band begins at what was measured.
    devices, lows, highs = [curve.last.devices], [curve.last.rate], [curve.last.rate]
    units = np.unique(np.geomspace(curve.last.units, tested, 24).round()).astype(int)
    for count in units[1:].tolist():
        score = tested_score(curve, count)
        if not isinstance(score, str):
            bounds = interval(curve, score, predicted_log_rate(curve, count))
            devices.append(count * curve.devices_per_unit)
            lows.append(bounds.low)
            highs.append(bounds.high)
    low, high = np.array(lows) / devices, np.array(highs) / devices
    label = f"{100 * COVERAGE:g} %"
    axes.fill_between(devices, low, high, color=PALETTE[1], alpha=0.25, linewidth=0, label=label)


def _draw_case(axes: Axes, dataset: Dataset, curve: Curve) -> None:
    for case in own_cases(dataset):
        if (case.curve.identity, case.curve.unit) == (curve.identity, curve.unit):
            rate = predicted_rate(case.curve, case.target.units) / case.target.devices
            style: dict[str, Any] = {"color": PALETTE[2], "markerfacecolor": "white", "linestyle": "none"}
            axes.plot(case.target.devices, rate, "D", label="from smaller sizes", **style)
