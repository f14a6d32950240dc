"""Predictions and what-if as JSON has them: numbers in full, intervals by their share."""

from collections.abc import Mapping, Sequence
from typing import Any

from dlperf_study.metrics.statistics import Interval
from dlperf_study.prediction.curves import Curve
from dlperf_study.prediction.narrowing import narrowings
from dlperf_study.prediction.physical_model import StepModel
from dlperf_study.prediction.prediction import PredictedSize, Prediction, Refusal
from dlperf_study.prediction.scenario import Scenario


def predictions_content(results: Sequence[Prediction | Refusal]) -> list[dict[str, Any]]:
    """Return predictions and refusals."""
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
    """Return what changes would give, and refusals."""
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
