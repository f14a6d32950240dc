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
from dlperf_study.prediction.intervals import LEVELS, interval
from dlperf_study.prediction.node_ring import predicted_log_rate, predicted_rate
from dlperf_study.prediction.prediction import Prediction, predictions_of
from dlperf_study.report import context
from dlperf_study.report.figures import charts
from dlperf_study.report.figures.figure import Figure, alt_text_of_table
from dlperf_study.report.figures.line_charts import IDEAL, device_axes, legend_below
from dlperf_study.report.figures.style import INK, PALETTE, SOFT, Width, wrapped
from dlperf_study.report.predictions import own_cases, study_predictions
from dlperf_study.report.tables.prediction_tables import prediction_table

#: So many series are drawn, in so many columns.
MOST_SERIES, _COLUMNS = 6, {"page": 3, "column": 2}
_PANEL_INCHES, _LETTERS = 1.9, {"page": 32, "column": 24}
_POINTS = "Throughput of one device against the number of devices. Points: measured, with 95 % intervals."
_BY_RING = (
    "Line: the ring of nodes through the smallest and the largest of them. Bands: 50 % and 90 % intervals of what was "
    "not measured, as far as published series test them; beyond, the line is dashed."
)
_BY_MODEL = "Line: the physical model, which has no intervals; dashed beyond what was measured."
_BOTH = "Of parameter servers the line is the physical model, without bands."
_IDEAL = "Dotted: every device as fast as at the least size."
_NOTHING = "No series has a second size, so nothing can be predicted."
_CASES = " Diamond: the largest size as the smaller ones predict it."


def prediction(dataset: Dataset) -> Iterator[Figure]:
    """Yield the figure of what a study predicts; of many series the first ones are shown."""
    results = study_predictions(dataset)
    drawn = list(predictions_of(results))
    draw = partial(_draw, dataset, drawn[:MOST_SERIES]) if drawn else None
    explanation = f"{_POINTS} {_lines(drawn)} {_IDEAL}{_CASES if own_cases(dataset) else ''}"
    omission = f" The first {MOST_SERIES} of {len(drawn)} series are shown." if len(drawn) > MOST_SERIES else ""
    title, caption = "Predicted sizes", f"{explanation}{omission} {context.conditions(dataset)}"
    alt = alt_text_of_table(title, prediction_table(results))
    yield Figure("prediction", title, caption, draw, _NOTHING, f"{explanation}{omission}", alt)


def _lines(drawn: Sequence[Prediction]) -> str:
    """Return what the lines and bands of some predictions are."""
    if drawn and all(prediction.by_model for prediction in drawn):
        return _BY_MODEL
    return f"{_BY_RING} {_BOTH}" if any(prediction.by_model for prediction in drawn) else _BY_RING


def _draw(dataset: Dataset, predictions: Sequence[Prediction], width: Width) -> Drawing:
    columns = min(len(predictions), _COLUMNS[width.name])
    rows = math.ceil(len(predictions) / columns)
    drawing, panels = charts.panels(dataset, width, rows, columns, rows * _PANEL_INCHES + 0.3)
    for axes, prediction in zip(panels, predictions, strict=False):
        _draw_prediction(axes, prediction)
        _draw_case(axes, dataset, prediction.curve)
        device_axes(axes, _ticks(prediction), logarithmic_y=False)
        axes.set_title(wrapped(prediction.curve.title, _LETTERS[width.name]))
        axes.set_xlabel("Devices")
    for axes in panels[len(predictions) :]:
        axes.set_visible(False)
    drawing.supylabel(f"Throughput of a device ({COLUMNS[dataset.rate].unit})", fontsize=7)
    legend_below(drawing, panels[: len(predictions)], width)
    return drawing


def _ticks(prediction: Prediction) -> list[int]:
    measured = [point.devices for point in prediction.curve.all_points]
    return [*measured, *(size.devices for size in prediction.sizes)]


def _draw_prediction(axes: Axes, prediction: Prediction) -> None:
    """Draw the measured sizes of a curve, the line through them, and the bands of the sizes that are claimed."""
    curve, reference = prediction.curve, prediction.reference
    last = max(prediction.claimed_units, *(size.units for size in prediction.sizes))
    axes.axhline(reference.rate / reference.devices, color=SOFT, linestyle=(0, (1, 1.5)), linewidth=0.9, label=IDEAL)
    method = "physical model" if prediction.by_model else "node ring"
    claimed = max(curve.last.units, prediction.claimed_units)
    _draw_line(axes, prediction, curve.points[0].units, claimed, "-", method)
    if last > prediction.claimed_units:
        _draw_line(axes, prediction, claimed, last, (0, (4, 1.5)), "not tested")
    _draw_bands(axes, prediction)
    for point in curve.all_points:
        bounds = point.log_rate.factor_interval()
        if bounds:
            ends = (bounds.low / point.devices, bounds.high / point.devices)
            axes.vlines(point.devices, *ends, color=PALETTE[0], linewidth=1.4, alpha=0.6)
        face = PALETTE[0] if bounds else "white"
        axes.plot(point.devices, point.rate / point.devices, "o", color=PALETTE[0], markerfacecolor=face)


def _draw_line(axes: Axes, prediction: Prediction, first: int, last: int, style: object, label: str) -> None:
    units = np.unique(np.geomspace(first, last, 40).round()).astype(int)
    devices = units * prediction.curve.devices_per_unit
    rates = [prediction.rate_on(int(count)) for count in units]
    axes.plot(devices, rates / devices, color=INK, linestyle=style, linewidth=1.0, label=label)


def _draw_bands(axes: Axes, prediction: Prediction) -> None:
    """Draw the intervals of each level between the largest measured size and the largest one that is claimed."""
    curve, last = prediction.curve, prediction.curve.last
    units = np.unique(np.geomspace(last.units, max(last.units, prediction.claimed_units), 24).round()).astype(int)
    devices = units * curve.devices_per_unit
    for share, alpha in zip(sorted(LEVELS, reverse=True), (0.18, 0.35), strict=True):
        # A band begins at what was measured.
        bounds = [(last.rate, last.rate)]
        for count in units[1:].tolist():
            held = interval(curve, count, predicted_log_rate(curve, count), share)
            bounds += [(held.low, held.high)] if held else []
        if len(bounds) == units.size > 1:
            ends = (np.array(bounds) / devices[:, None]).T
            axes.fill_between(devices, *ends, color=PALETTE[1], alpha=alpha, linewidth=0, label=f"{100 * share:g} %")


def _draw_case(axes: Axes, dataset: Dataset, curve: Curve) -> None:
    """Draw the largest size as the smaller ones predict it, where a series has three."""
    for case in own_cases(dataset):
        if (case.curve.identity, case.curve.unit) == (curve.identity, curve.unit):
            rate = predicted_rate(case.curve, case.target.units) / case.target.devices
            style: dict[str, Any] = {"color": PALETTE[2], "markerfacecolor": "white", "linestyle": "none"}
            axes.plot(case.target.devices, rate, "D", label="from smaller sizes", **style)
