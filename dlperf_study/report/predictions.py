"""The predictions of a study with the names that pages give its series, and predictions and what-if as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.statistics import Interval
from dlperf_study.prediction.back_test import largest_left_out
from dlperf_study.prediction.curves import Curve, Unit, curves_of_study
from dlperf_study.prediction.intervals import Case, is_for_ring
from dlperf_study.prediction.narrowing import narrowings
from dlperf_study.prediction.physical_model import StepModel
from dlperf_study.prediction.prediction import PredictedSize, Prediction, Refusal, predict
from dlperf_study.prediction.scenario import Scenario
from dlperf_study.report.formatting import model_name
from dlperf_study.report.series import SEPARATOR, all_series, joined, short_labels


@kept_with_dataset
def study_curves(dataset: Dataset) -> list[Curve]:
    """Return the curves of a study; each is called by its model and what distinguishes its series."""
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
    """Return what each series of a study says of larger sizes, as ``predict`` does."""
    return predict(study_curves(dataset), unit, sizes)


def own_cases(dataset: Dataset) -> list[Case]:
    """Return the largest size of each series of a study that has three, with its smaller ones."""
    return largest_left_out(curve for curve in study_curves(dataset) if is_for_ring(curve))


def predictions_content(results: Sequence[Prediction | Refusal]) -> list[dict[str, Any]]:
    """Return predictions and refusals as JSON has them: numbers in full, intervals by their share."""
    return [_prediction_content(result) for result in results]


def _prediction_content(result: Prediction | Refusal) -> dict[str, Any]:
    measured = {point.devices: point.rate for point in result.curve.all_points}
    about = {**_series_content(result.curve), "measured": measured}
    if isinstance(result, Refusal):
        return {**about, "refused": result.reason}
    return {
        **about,
        "efficiency_relative_to_devices": result.reference.devices,
        "largest_claimed": result.claimed_units,
        "reason": result.reason,
        "physical_model": result.model if isinstance(result.model, str) else _model_content(result.model),
        "sizes": [_size_content(result, size) for size in result.sizes],
    }


def _size_content(prediction: Prediction, size: PredictedSize) -> dict[str, Any]:
    return {
        f"{prediction.curve.unit}s": size.units,
        "devices": size.devices,
        "rate": size.rate,
        "efficiency": size.efficiency,
        "rate_intervals": _bounds_by_share(size.rate_intervals),
        "efficiency_intervals": _bounds_by_share(size.efficiency_intervals),
        "reason": size.reason,
        "physical_model_rate": size.model_rate,
        "narrowed_by": {entry.measurement: entry.half_width for entry in narrowings(prediction, size)},
    }


def _bounds_by_share(intervals: Mapping[float, Interval | None]) -> dict[str, list[float] | None]:
    return {f"{share:g}": [held.low, held.high] if held else None for share, held in intervals.items()}


def scenarios_content(results: Sequence[Scenario | Refusal]) -> list[dict[str, Any]]:
    """Return what changes would give, and refusals, as JSON has them."""
    return [_scenario_content(result) for result in results]


def _scenario_content(result: Scenario | Refusal) -> dict[str, Any]:
    about = _series_content(result.curve)
    if isinstance(result, Refusal):
        return {**about, "refused": result.reason}
    sizes = []
    for size in result.sizes:
        rates = {"rate": size.rate, "changed_rate": size.changed_rate, "ratio": size.ratio}
        sizes.append({f"{result.curve.unit}s": size.units, "devices": size.devices, **rates})
    left_out: Mapping[str, str] = {str(units): reason for units, reason in result.left_out.items()}
    return {**about, "physical_model": _model_content(result.model), "sizes": sizes, "left_out": left_out}


def _series_content(curve: Curve) -> dict[str, Any]:
    return {"series": curve.label, "unit": curve.unit, "rate_unit": curve.rate_unit}


def _model_content(model: StepModel) -> dict[str, Any]:
    """Return the terms of a model; seconds, and bytes/s."""
    return {
        "algorithm": model.cost.algorithm.name,
        "is_assumed": model.cost.is_assumed,
        "computation_seconds": model.computation_seconds,
        "input_seconds": model.input_seconds,
        "jitter_seconds": model.jitter_seconds,
        "hidden_share": model.hidden_share,
        "hiding_seconds": model.hiding_seconds,
        "round_seconds": model.cost.round_seconds,
        "link_bytes_per_second": model.link_bandwidth,
    }
