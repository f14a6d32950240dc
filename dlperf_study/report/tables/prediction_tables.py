"""What is predicted of sizes that were not measured: tables of a study's curves, and the same as text and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import bounded_value
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.statistics import Interval, bounded
from dlperf_study.prediction.curves import Curve, Unit, curves_of_study
from dlperf_study.prediction.intervals import (
    COVERAGE,
    Case,
    interval,
    largest_left_out,
    reason_against_ring,
    tested_score,
)
from dlperf_study.prediction.narrowing import compute_half_width, narrowings
from dlperf_study.prediction.node_ring import predicted_log_throughput
from dlperf_study.prediction.prediction import (
    PredictedSize,
    Prediction,
    Refusal,
    predict,
    refused_curves,
    select_predictions,
)
from dlperf_study.report.formatting import MINUS, format_bounded, integer, listed, model_name, text_if
from dlperf_study.report.say import caption
from dlperf_study.report.series import SEPARATOR, all_series, joined, short_labels
from dlperf_study.report.tables.table import Cell, Heading, Table, as_text, make_table

_SHARE = f"{100 * COVERAGE:g} %"


@kept_with_dataset
def study_curves(dataset: Dataset) -> list[Curve]:
    """Return the curves of a study, labelled by model and series."""
    series = all_series(dataset.whole or dataset)
    labels: dict[str, str] = {}
    for line, label in zip(series, short_labels(series), strict=True):
        model = model_name(dataset.configuration_rows[line.configuration_ids[0]])
        name = joined(model, *filter(model.__ne__, label.split(SEPARATOR)))
        labels |= dict.fromkeys(line.configuration_ids, name)
    return [replace(curve, label=labels[curve.configuration_id]) for curve in curves_of_study(dataset)]


def study_predictions(
    dataset: Dataset, unit: Unit | None = None, sizes: Sequence[int] = ()
) -> list[Prediction | Refusal]:
    """Return the predictions of a study for larger sizes."""
    return predict(study_curves(dataset), unit, sizes)


def own_cases(dataset: Dataset) -> list[Case]:
    """Return the largest size of each series with three sizes."""
    return largest_left_out(curve for curve in study_curves(dataset) if not reason_against_ring(curve))


def predictions_content(results: Sequence[Prediction | Refusal]) -> list[dict[str, Any]]:
    """Return predictions and refusals as JSON content."""
    contents = []
    for result in results:
        curve = result.curve
        content: dict[str, Any] = {"series": curve.label, "unit": curve.unit, "throughput_unit": curve.throughput_unit}
        content["measured"] = {point.devices: point.throughput for point in curve.all_points}
        if isinstance(result, Refusal):
            content["refused"] = result.reason
        else:
            content["efficiency_relative_to_devices"] = result.reference.devices
            content["largest_tested"] = result.largest_tested
            content["sizes"] = list(map(partial(_size_content, result), result.sizes))
        contents.append(content)
    return contents


def _size_content(prediction: Prediction, size: PredictedSize) -> dict[str, Any]:
    return {
        f"{prediction.curve.unit}s": size.units,
        "devices": size.devices,
        "throughput": size.throughput,
        "efficiency": size.efficiency,
        "throughput_interval": _bounds(size.throughput_interval),
        "efficiency_interval": _bounds(size.efficiency_interval),
        "reason": size.reason,
        "narrowed_by": {entry.measurement: entry.half_width for entry in narrowings(prediction, size)},
    }


def _bounds(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None


def predictions(dataset: Dataset) -> Table:
    """Return the predictions of sizes that a study has not measured."""
    return prediction_table(study_predictions(dataset))


def not_predicted(dataset: Dataset) -> Table:
    """Return the series without predictions, and why."""
    rows = []
    for result in study_predictions(dataset):
        if isinstance(result, Refusal):
            rows.append((f"{result.curve.title}, {_measured(result.curve)}", result.reason))
    return make_table("not-predicted", ("Series", "Not predicted"), rows)


def back_test(dataset: Dataset) -> Table:
    """Return the largest size of each series, predicted from smaller ones."""
    unit = COLUMNS[dataset.throughput_column].unit
    throughputs = Heading.number("Predicted", unit, interval=True), Heading.number("Measured", unit, interval=True)
    headings = ("Series", "From", "Size", *throughputs, Heading.number("Error", "%"))
    rows = map(partial(_case_row, dataset), own_cases(dataset))
    return make_table("back-test", headings, rows, caption("back-test", share=_SHARE))


def _case_row(dataset: Dataset, case: Case) -> tuple[Any, ...]:
    curve, target = case.curve, case.target
    log_throughput = predicted_log_throughput(curve, target.units)
    score = tested_score(curve, target.units)
    reason, bounds = "", None
    if isinstance(score, str):
        reason = score
    else:
        bounds = interval(curve, score, log_throughput)
    measured = bounded_value(dataset.configuration_rows[curve.configuration_id], dataset.throughput_column)
    return (
        curve.title,
        listed(str(point.units) for point in curve.points),
        counted(target.units, curve.unit),
        Cell.of(bounded(log_throughput.factor, bounds), reason),
        Cell.of(measured, caption("back-test", "one_run")),
        f"{100 * (log_throughput.factor / target.throughput - 1):+.1f}".replace("-", MINUS),
    )


def prediction_table(results: Sequence[Prediction | Refusal]) -> Table:
    """Return the predicted sizes of all curves, a group for each."""
    rows, groups = [], []
    for prediction in select_predictions(results):
        for size in prediction.sizes:
            throughput = Cell.of(bounded(size.throughput, size.throughput_interval), size.reason)
            efficiency = Cell.of(bounded(size.efficiency, size.efficiency_interval), size.reason)
            rows.append((_size_name(prediction, size), integer(size.devices), throughput, efficiency))
            groups.append(prediction.curve.title)
    throughput_unit = listed(sorted({prediction.curve.throughput_unit for prediction in select_predictions(results)}))
    throughputs = (
        Heading.number("Throughput", throughput_unit, interval=True),
        Heading.number("Efficiency", interval=True),
    )
    headings, about = ("Size", Heading.number("Devices"), *throughputs), f"{_SHARE} intervals. {caption('predictions')}"
    return make_table("predictions", headings, rows, about, notes=_notes(results), groups=groups)


def describe(results: Sequence[Prediction | Refusal]) -> str:
    """Return predictions and refusals as text for the command line."""
    parts = []
    for prediction in select_predictions(results):
        title = f"{prediction.curve.title}: {_measured(prediction.curve)}"
        lines = [title, as_text(prediction_table([prediction])), *_reasons(prediction), *narrowing_lines(prediction)]
        parts.append("\n".join(lines))
    for reason, curves in refused_curves(results).items():
        series = (f"  {curve.title}, {_measured(curve)}" for curve in curves)
        parts.append("\n".join([f"not predicted: {reason}", *series]))
    if any(select_predictions(results)):
        parts.append(f"{caption('predictions')}\n{caption('predictions', 'intervals', share=_SHARE)}")
    return "\n\n".join(parts)


def _reasons(prediction: Prediction) -> Iterator[str]:
    """Yield why sizes have no interval, those of one reason together."""
    sizes: dict[str, list[int]] = {}
    for size in prediction.sizes:
        if size.reason:
            sizes.setdefault(size.reason, []).append(size.units)
    for reason, units in sizes.items():
        yield f"{listed(map(str, units))} {_plural(prediction.curve.unit, units)}: {reason}"


def _measured(curve: Curve) -> str:
    """Return the measured sizes of a curve and the largest's throughput."""
    sizes = list(map(attrgetter("units"), curve.points))
    units = f"{listed(map(str, sizes))} {_plural(curve.unit, sizes)}"
    devices = text_if(curve.unit == Unit.NODE, f" of {counted(curve.devices_per_unit, 'device')}")
    throughput = f"{format_bounded(curve.last.throughput)[0]} {curve.throughput_unit}"
    return f"measured on {units}{devices}, {throughput}{text_if(len(sizes) > 1, f' on {sizes[-1]}')}"


def _plural(unit: Unit, units: Sequence[int]) -> str:
    return str(unit) + text_if(list(units) != [1], "s")


def _notes(results: Sequence[Prediction | Refusal]) -> Iterator[str]:
    """Yield notes on efficiency, the largest tested size, and errors left out."""
    for prediction in select_predictions(results):
        curve = prediction.curve
        name = text_if(len(results) > 1, f"{curve.title}: ")
        has_larger = prediction.largest_tested != curve.last.units
        size = text_if(has_larger, counted(prediction.largest_tested, curve.unit))
        efficiency = caption("predictions", "efficiency", devices=prediction.reference.devices)
        yield f"{name}{efficiency} {caption('predictions', 'largest', size=size)}"
        has_intervals = any(size.throughput_interval for size in prediction.sizes)
        errors = (curve.points[0].log_throughput.error, curve.last.log_throughput.error)
        if curve.configuration_id and has_intervals and None in errors:
            yield name + caption("predictions", "no_error")


def further_measurements(dataset: Dataset) -> Table:
    """Return what further measurements would narrow each prediction's interval to."""
    rows, groups = [], []
    for prediction in select_predictions(study_predictions(dataset)):
        for size in prediction.sizes:
            now = compute_half_width(prediction.curve, size.units)
            for result in narrowings(prediction, size):
                half_widths = _percent(now), _percent(result.half_width)
                rows.append((_size_name(prediction, size), result.measurement, *half_widths))
                groups.append(prediction.curve.title)
    headings = ("Size", "After measuring", Heading.number("Now", "+%"), Heading.number("Then", "+%"))
    about = caption("further-measurements", share=_SHARE)
    return make_table("further-measurements", headings, rows, about, groups=groups)


def narrowing_lines(prediction: Prediction) -> Iterator[str]:
    """Yield for each predicted size what would narrow its interval most."""
    for size in prediction.sizes:
        results = narrowings(prediction, size)
        if not results:
            continue
        now = compute_half_width(prediction.curve, size.units)
        options = listed(f"{result.measurement} (+{_percent(result.half_width)} %)" for result in results)
        facts = {"size": _size_name(prediction, size), "share": _SHARE, "now": _percent(now), "options": options}
        yield caption("further-measurements", "to_give" if now is None else "to_narrow", **facts)


def _size_name(prediction: Prediction, size: PredictedSize) -> str:
    return counted(size.units, prediction.curve.unit)


def _percent(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.0f}"
