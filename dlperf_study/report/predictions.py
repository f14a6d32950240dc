"""The predictions of a study with the names that pages give its series, and predictions as JSON."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.statistics import Interval
from dlperf_study.prediction.curves import Curve, Unit, curves_of_study
from dlperf_study.prediction.intervals import Case, largest_left_out, reason_against_ring
from dlperf_study.prediction.narrowing import narrowings
from dlperf_study.prediction.prediction import PredictedSize, Prediction, Refusal, predict
from dlperf_study.report.formatting import model_name
from dlperf_study.report.series import SEPARATOR, all_series, joined, short_labels


@kept_with_dataset
def study_curves(dataset: Dataset) -> list[Curve]:
    """Return the curves of a study, labelled by model and series."""
    series = all_series(dataset.whole or dataset)
    labels: dict[str, str] = {}
    for line, label in zip(series, short_labels(series), strict=True):
        model = model_name(dataset.configuration_rows[line.identities[0]])
        parts = [part for part in label.split(SEPARATOR) if part != model]
        labels |= dict.fromkeys(line.identities, joined(model, *parts))
    return [replace(curve, label=labels[curve.identity]) for curve in curves_of_study(dataset)]


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
        content: dict[str, Any] = {"series": curve.label, "unit": curve.unit, "rate_unit": curve.rate_unit}
        content["measured"] = {point.devices: point.rate for point in curve.all_points}
        if isinstance(result, Refusal):
            content["refused"] = result.reason
        else:
            content["efficiency_relative_to_devices"] = result.reference.devices
            content["largest_tested"] = result.largest_tested
            content["sizes"] = [_size_content(result, size) for size in result.sizes]
        contents.append(content)
    return contents


def _size_content(prediction: Prediction, size: PredictedSize) -> dict[str, Any]:
    return {
        f"{prediction.curve.unit}s": size.units,
        "devices": size.devices,
        "rate": size.rate,
        "efficiency": size.efficiency,
        "rate_interval": _bounds(size.rate_interval),
        "efficiency_interval": _bounds(size.efficiency_interval),
        "reason": size.reason,
        "narrowed_by": {entry.measurement: entry.half_width for entry in narrowings(prediction, size)},
    }


def _bounds(interval: Interval | None) -> list[float] | None:
    if interval:
        return [interval.low, interval.high]
    return None
