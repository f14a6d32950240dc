"""What is predicted of sizes that were not measured: a table of a study's curves, and the same as text."""

from collections.abc import Iterator, Sequence
from typing import Any

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.prediction.curves import Curve, CurvePoint, Unit
from dlperf_study.prediction.intervals import LEVELS, Case, interval, reason_without_test
from dlperf_study.prediction.laws import labels_of
from dlperf_study.prediction.node_ring import predicted_log_rate
from dlperf_study.prediction.physical_model import model_of
from dlperf_study.prediction.prediction import (
    TOO_UNCERTAIN,
    PredictedSize,
    Prediction,
    Refusal,
    model_rate,
    predictions_of,
    refused_curves,
)
from dlperf_study.report.formatting import MINUS, bounded_value, format_bounded, integer, listed
from dlperf_study.report.predictions import own_cases, study_predictions
from dlperf_study.report.tables.further_measurements import narrowing_lines
from dlperf_study.report.tables.table import Cell, Heading, Table, as_text

#: The shares of the two intervals: the first has a column of its own, the second is next to its value.
_INNER, _OUTER = LEVELS


def _in_percent(share: float) -> str:
    return f"{share * 100:g} %"


METHOD = (
    "Predicted by the ring of nodes (devices, inside one node): what a step waits for grows with (m − 1)/m of m nodes, "
    "from the smallest and the largest measured size. Nothing is fitted."
)
MODEL = (
    "The physical model: computation + input wait + waiting for jitter + max(0, exchange − overlap), of which the "
    "exchange grows by the rounds and bytes of its algorithm, a ring where the sizes do not tell which; without an "
    "interval, as no published series tests it."
)
INTERVALS = (
    f"Intervals hold {_in_percent(_INNER)} and {_in_percent(_OUTER)} of the published series of other sources, "
    "predicted in the same way; the error of the measured rates is added. What no published series has is not in them."
)
_NO_ERROR = "The measured rates have no interval, as of fewer than three runs: what runs differ by is not in these."
_NO_TEST = "no published series tests this prediction"
_ONE_RUN = "fewer than three runs: no interval"
_LABELS = (
    "Fitted to all sizes of a series, also those inside one node, with 95 % profile intervals. They describe a curve; "
    "extended, they predict published series worse than the ring does."
)
_NOTHING = "No series has a second size, so nothing can be predicted."


def predictions(dataset: Dataset) -> Table:
    """Return what is predicted of sizes that a study has not measured, as far as claims reach."""
    return prediction_table(study_predictions(dataset))


def not_predicted(dataset: Dataset) -> Table:
    """Return the series of a study of which nothing is predicted, and which point each needs."""
    headings = (Heading("Series"), Heading("Not predicted"))
    rows = []
    for result in study_predictions(dataset):
        if isinstance(result, Refusal):
            rows.append((Cell(f"{result.curve.title}, {_measured(result.curve)}"), Cell(result.reason)))
    empty = "Every series is predicted."
    return Table("not-predicted", "What can't be predicted", "", headings, tuple(rows), empty=empty)


def back_test(dataset: Dataset) -> Table:
    """Return the largest size of each series of a study that has three, as its smaller ones predict it."""
    cases = own_cases(dataset)
    model_errors = [_model_error(case) for case in cases]
    rows = [_case_row(dataset, case) for case in cases]
    unit = COLUMNS[dataset.rate].unit
    headings = [
        Heading("Series"),
        Heading("From"),
        Heading("Size"),
        Heading("Predicted", unit, numeric=True, interval=True),
        Heading("Measured", unit, numeric=True, interval=True),
        Heading("Error", "%", numeric=True),
    ]
    if any(error is not None for error in model_errors):
        headings.append(Heading("Error of the physical model", "%", numeric=True))
        rows = [(*row, _error_cell(error)) for row, error in zip(rows, model_errors, strict=True)]
    caption = f"Intervals of predictions hold {_in_percent(_OUTER)}, and those of measured rates are of 95 %."
    empty = "No series has three sizes, of which the largest could be predicted from the others."
    title = "The largest size, predicted from the smaller ones"
    return Table("back-test", title, caption, tuple(headings), tuple(rows), empty=empty)


def _case_row(dataset: Dataset, case: Case) -> tuple[Cell, ...]:
    """Return the largest size of a series as the ring of nodes predicts it, as it was measured, and the error."""
    curve, target = case.curve, case.target
    log_rate = predicted_log_rate(curve, target.units)
    held = interval(curve, target.units, log_rate, _OUTER)
    bounds = (held.low, held.high) if held else (None, None)
    measured = bounded_value(dataset.configuration_rows[curve.identity], dataset.rate)
    return (
        Cell(curve.title),
        Cell(listed(str(point.units) for point in curve.points)),
        Cell(_size(curve, target.units)),
        Cell.of((log_rate.factor, *bounds), _no_interval(curve)),
        Cell.of(measured, _ONE_RUN),
        _error_cell(log_rate.factor / target.rate - 1),
    )


def _model_error(case: Case) -> float | None:
    """Return by how much the physical model of the smaller sizes misses the largest one; None where there is none."""
    rate = model_rate(model_of(case.curve), case.curve, case.target.units)
    return None if rate is None else rate / case.target.rate - 1


def _error_cell(error: float | None) -> Cell:
    if error is None:
        return Cell.missing("the smaller sizes do not identify the physical model")
    return Cell(f"{100 * error:+.1f}".replace("-", MINUS))


def laws(dataset: Dataset) -> Table:
    """Return the laws that the series of a study look like, or why its points don't say."""
    rows, groups = [], []
    for prediction in predictions_of(study_predictions(dataset)):
        for label in labels_of(prediction.curve):
            bounds = (label.interval.low, label.interval.high) if label.interval else (None, None)
            value = Cell.missing(label.reason) if label.value is None else Cell.of((label.value, *bounds), "")
            rows.append((Cell(label.law), Cell(label.parameter), value))
            groups.append(prediction.curve.title)
    headings = (Heading("Law"), Heading("Parameter"), Heading("Value", numeric=True, interval=True))
    title, empty = "Laws, as labels", "No series has two sizes."
    return Table("laws", title, _LABELS, headings, tuple(rows), empty=empty, groups=tuple(groups))


def prediction_table(results: Sequence[Prediction | Refusal]) -> Table:
    """Return the predicted sizes of all curves that can be predicted, a group for each."""
    rows, groups = [], []
    by_ring = _by_ring(results)
    # Where all rates are those of the model, a column of its own would repeat them.
    with_model = has_model_rates(by_ring)
    for prediction in predictions_of(results):
        for size in prediction.sizes:
            model_cell = (_model_cell(prediction, size),) if with_model else ()
            rows.append((*_row(prediction.curve, size), *model_cell))
            groups.append(prediction.curve.title)
    units = listed(sorted({prediction.curve.rate_unit for prediction in predictions_of(results)}))
    headings = _prediction_headings(units, with_model)
    parts = [f"Intervals next to values: {_in_percent(_OUTER)}. {METHOD}"] if by_ring or not rows else []
    if has_model_rates(results):
        parts.append(MODEL)
    title, caption = "Sizes that were not measured", " ".join(parts)
    notes = tuple(_notes(results))
    return Table("predictions", title, caption, headings, tuple(rows), notes, _NOTHING, tuple(groups))


def _prediction_headings(rate_unit: str, with_model: bool) -> tuple[Heading, ...]:
    return (
        Heading("Size"),
        Heading("Devices", numeric=True),
        Heading(f"Throughput, {_in_percent(_OUTER)}", rate_unit, numeric=True, interval=True),
        Heading(f"Throughput, {_in_percent(_INNER)}"),
        Heading(f"Efficiency, {_in_percent(_OUTER)}", numeric=True, interval=True),
        Heading(f"Efficiency, {_in_percent(_INNER)}"),
        *([Heading("By the physical model", rate_unit, numeric=True)] if with_model else []),
    )


def _by_ring(results: Sequence[Prediction | Refusal]) -> list[Prediction]:
    """Return the predictions by the ring of nodes."""
    return [prediction for prediction in predictions_of(results) if not prediction.by_model]


def has_model_rates(results: Sequence[Prediction | Refusal]) -> bool:
    """Return whether the physical model says something of any size."""
    return any(size.model_rate is not None for result in predictions_of(results) for size in result.sizes)


def _model_cell(prediction: Prediction, size: PredictedSize) -> Cell:
    """Return the rate by the physical model, or why there is none."""
    if size.model_rate is not None:
        return Cell(format_bounded(size.model_rate)[0])
    return Cell.missing(prediction.model if isinstance(prediction.model, str) else TOO_UNCERTAIN)


def describe(results: Sequence[Prediction | Refusal]) -> str:
    """Return predictions and refusals as text for the command line; series that one reason refuses are listed once."""
    parts = []
    for prediction in predictions_of(results):
        title = f"{prediction.curve.title}: {_measured(prediction.curve)}"
        lines = [title, as_text(prediction_table([prediction])), *_reasons(prediction), *narrowing_lines(prediction)]
        parts.append("\n".join(lines))
    for reason, curves in refused_curves(results).items():
        series = (f"  {curve.title}, {_measured(curve)}" for curve in curves)
        parts.append("\n".join([f"not predicted: {reason}", *series]))
    methods = [METHOD, INTERVALS] if _by_ring(results) else []
    if has_model_rates(results):
        methods.append(MODEL)
    if methods:
        parts.append("\n".join(methods))
    return "\n\n".join(parts)


def _reasons(prediction: Prediction) -> Iterator[str]:
    """Yield why sizes have no interval, those of one reason together, without what holds for all sizes."""
    sizes: dict[str, list[int]] = {}
    for size in prediction.sizes:
        if size.reason and size.reason != prediction.reason:
            sizes.setdefault(size.reason, []).append(size.units)
    for reason, units in sizes.items():
        yield f"{listed(map(str, units))} {_plural(prediction.curve.unit, units)}: {reason}"


def _row(curve: Curve, size: PredictedSize) -> tuple[Cell, ...]:
    name, devices = Cell(_size(curve, size.units)), Cell(integer(size.devices))
    rate = _cells(size.rate, size.rate_intervals, size.reason)
    efficiency = _cells(size.efficiency, size.efficiency_intervals, size.reason)
    return (name, devices, *rate, *efficiency)


def _cells(value: float, intervals: Any, reason: str) -> tuple[Cell, Cell]:
    """Return a value with its outer interval, and the inner interval."""
    outer, inner = intervals[_OUTER], intervals[_INNER]
    if outer is None or inner is None:
        printed, _ = format_bounded(value)
        return Cell(printed, footnote=reason), Cell("")
    printed, interval = format_bounded(value, outer.low, outer.high)
    return Cell(printed, interval), Cell(format_bounded(value, inner.low, inner.high)[1])


def _size(curve: Curve, units: int) -> str:
    return counted(units, curve.unit)


def _no_interval(curve: Curve) -> str:
    return reason_without_test(curve) or _NO_TEST


def _measured(curve: Curve) -> str:
    """Return which sizes of a curve were measured, and the rate of the largest."""
    sizes = listed(str(point.units) for point in curve.points)
    devices = f" of {counted(curve.devices_per_unit, 'device')}" if curve.unit == Unit.NODE else ""
    units = _plural(curve.unit, [point.units for point in curve.points])
    rate = format_bounded(curve.last.rate)[0]
    largest = f" on {curve.points[-1].units}" if len(curve.points) > 1 else ""
    return f"measured on {sizes} {units}{devices}, {rate} {curve.rate_unit}{largest}"


def _plural(unit: Unit, units: Sequence[int]) -> str:
    return str(unit) if list(units) == [1] else f"{unit}s"


def _notes(results: Sequence[Prediction | Refusal]) -> Iterator[str]:
    """Yield what efficiencies are relative to, how far claims reach, and what is missing in intervals."""
    for prediction in predictions_of(results):
        name = "" if len(results) == 1 else f"{prediction.curve.title}: "
        yield f"{name}{_reach(prediction)}"
        if any(point.log_rate.error is None for point in _used(prediction)) and not prediction.reason:
            yield f"{name}{_NO_ERROR}"


def _used(prediction: Prediction) -> tuple[CurvePoint, ...]:
    curve = prediction.curve
    return (curve.points[0], curve.last) if curve.identity else ()


def _reach(prediction: Prediction) -> str:
    """Return what efficiencies are relative to, and the largest size that a claim is made for."""
    relative = f"Efficiency is relative to {counted(prediction.reference.devices, 'device')}"
    if prediction.reason:
        return f"{relative}. No claim is made for any size: {prediction.reason}."
    largest = _size(prediction.curve, prediction.claimed_units)
    return f"{relative}. The largest size for which a claim is made: {largest}."
