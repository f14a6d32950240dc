"""Further measurements that would narrow a prediction interval.

A further size is assumed to give the predicted throughput, with the error of the largest measured one; more runs of a
size to keep its mean and deviation.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dlperf_study.core.wording import counted
from dlperf_study.metrics.statistics import MANY, Estimate
from dlperf_study.prediction.curves import Curve, CurvePoint
from dlperf_study.prediction.intervals import interval, tested_score
from dlperf_study.prediction.node_ring import predicted_log_throughput
from dlperf_study.prediction.prediction import PredictedSize, Prediction

MORE_RUNS = 3
#: What would leave more than this share of an interval is not worth a measurement.
_NARROWER = 0.95
#: How many times the largest measured size is within reach.
_REACH = 2


@dataclass(frozen=True)
class Narrowing:
    """The interval of a predicted size after one measurement.

    ``measurement``: a number of units, or more runs on one. ``half_width``: as a share of the throughput, upwards.
    """

    measurement: str
    half_width: float


def narrowings(prediction: Prediction, size: PredictedSize) -> list[Narrowing]:
    """Return useful measurements for a predicted size, the best first."""
    if size.is_measured:
        return []
    curve = prediction.curve
    now = compute_half_width(curve, size.units)
    results = []
    for measurement, further_curve in _further(curve, size.units):
        half_width = compute_half_width(further_curve, size.units)
        if half_width is not None and (now is None or half_width < _NARROWER * now):
            results.append(Narrowing(measurement, half_width))
    return sorted(results, key=lambda result: result.half_width)


def compute_half_width(curve: Curve, units: int) -> float | None:
    """Return the upper half-width as a share of the throughput, or None."""
    score = tested_score(curve, units)
    if isinstance(score, str):
        return None
    log_throughput = predicted_log_throughput(curve, units)
    return interval(curve, score, log_throughput).high / log_throughput.factor - 1


def _further(curve: Curve, units: int) -> Iterator[tuple[str, Curve]]:
    """Yield each further measurement, with the resulting curve."""
    last = curve.last.units
    further = (last + units) // 2 if units <= _REACH * last else _REACH * last
    if last < further < units:
        predicted = predicted_log_throughput(curve, further)
        estimate = Estimate(predicted.mean, curve.last.log_throughput.error, curve.last.log_throughput.freedom)
        point = CurvePoint(further, further * curve.devices_per_unit, estimate)
        yield counted(further, curve.unit), replace(curve, points=(*curve.points, point))
    for point in dict.fromkeys((curve.points[0], curve.last)):
        estimate = point.log_throughput
        if estimate.error is not None and estimate.freedom < MANY:
            runs = estimate.freedom + 1
            error = estimate.error * math.sqrt(runs / (runs + MORE_RUNS))
            more = replace(point, log_throughput=Estimate(estimate.mean, error, estimate.freedom + MORE_RUNS))
            measurement = f"{MORE_RUNS} more runs on {counted(point.units, curve.unit)}"
            yield measurement, curve.replace_point(point, more)
