"""Predicted throughputs of sizes that were not measured."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.findings import number
from dlperf_study.metrics.statistics import bounded
from dlperf_study.prediction.curves import Curve, curves_of_study
from dlperf_study.prediction.intervals import COVERAGE, largest_left_out, reason_against_ring
from dlperf_study.prediction.prediction import predict, refused_curves, select_predictions

MAX_LINES = 3


@dataclass(frozen=True)
class Predicted:
    """The next larger size of a series; ``reference_devices``: those that its efficiency is relative to."""

    subject: str
    throughput: number.Number
    throughput_unit: str
    units: int
    unit: str
    devices: int
    efficiency: number.Number
    reference_devices: int
    coverage: float
    no_interval_reason: str


@dataclass(frozen=True)
class BackTest:
    """By which shares the largest measured size of each series would have been mispredicted from the smaller ones."""

    series: int
    low: float
    high: float


@dataclass(frozen=True)
class NotPredicted:
    """Series without a prediction, and why."""

    subjects: tuple[str, ...]
    reason: str


def page(dataset: Dataset) -> Iterator[object]:
    """Yield the next size of the first series, how well their last size is predicted, and what is not predicted."""
    curves = study_curves(dataset)
    results = predict(curves)
    predictions = list(select_predictions(results))
    for prediction in predictions[:MAX_LINES]:
        curve, size = prediction.curve, prediction.sizes[0]
        yield Predicted(
            curve.configuration_id,
            number.from_bounded(bounded(size.throughput, size.throughput_interval)),
            curve.throughput_unit,
            size.units,
            curve.unit,
            size.devices,
            number.from_bounded(bounded(size.efficiency, size.efficiency_interval)),
            prediction.reference.devices,
            COVERAGE,
            size.reason,
        )
    predicted = {(prediction.curve.configuration_id, prediction.curve.unit) for prediction in predictions}
    yield from back_test([curve for curve in curves if (curve.configuration_id, curve.unit) in predicted])
    for reason, refused in refused_curves(results).items():
        yield NotPredicted(tuple(dict.fromkeys(curve.configuration_id for curve in refused)), reason)


def back_test(curves: list[Curve]) -> Iterator[BackTest]:
    """Yield the prediction errors of each curve's largest measured size."""
    cases = largest_left_out(curve for curve in curves if not reason_against_ring(curve))
    errors = [math.expm1(case.log_error) for case in cases]
    if errors:
        yield BackTest(len(errors), min(errors), max(errors))


@kept_with_dataset
def study_curves(dataset: Dataset) -> list[Curve]:
    """Return the curves of a study."""
    return curves_of_study(dataset)
