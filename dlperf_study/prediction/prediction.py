"""Predictions for curves, and the largest size with an interval."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dlperf_study.core.wording import counted
from dlperf_study.metrics.statistics import Interval
from dlperf_study.prediction.curves import Curve, CurvePoint, Unit
from dlperf_study.prediction.intervals import interval, largest_tested, reason_against_ring, tested_score
from dlperf_study.prediction.node_ring import predicted_log_throughput, predicted_throughput

MEASURED = "measured"


@dataclass(frozen=True)
class PredictedSize:
    """Throughput and efficiency of one size, with 90 % intervals.

    ``reason``: why there is no interval. ``is_measured``: the numbers were measured.
    """

    units: int
    devices: int
    throughput: float
    efficiency: float
    throughput_interval: Interval | None = None
    efficiency_interval: Interval | None = None
    reason: str = ""
    is_measured: bool = False


@dataclass(frozen=True)
class Prediction:
    """Predicted larger sizes of a curve.

    ``reference``: the smallest measured size; efficiencies are relative to it. ``largest_tested``: the largest number
    of units with an interval, or the largest measured one.
    """

    curve: Curve
    reference: CurvePoint
    sizes: tuple[PredictedSize, ...]
    largest_tested: int


@dataclass(frozen=True)
class Refusal:
    """A curve without predictions, and the point to measure."""

    curve: Curve
    reason: str


def predict(curves: Sequence[Curve], unit: Unit | None = None, sizes: Sequence[int] = ()) -> list[Prediction | Refusal]:
    """Predict the throughputs of each series on so many nodes or devices.

    ``unit``: of the sizes; None: nodes if a series has several, else devices. ``sizes``: by default twice the largest
    measured one, and each doubling that has an interval. Workers of unknown nodes count as either. A series without a
    curve over this unit is rejected, with the point to measure.
    """
    series: dict[str, list[Curve]] = {}
    for curve in curves:
        series.setdefault(curve.label, []).append(curve)
    results: list[Prediction | Refusal] = []
    for of_series in series.values():
        fitting = []
        for curve in of_series:
            if unit is None or curve.unit in (unit, Unit.WORKER):
                fitting.append(curve)
        if fitting:
            results.append(_predict_curve(fitting[0], sizes))
        else:
            results.append(Refusal(of_series[0], _no_curve(of_series[0], unit)))
    return results


def _predict_curve(curve: Curve, sizes: Sequence[int]) -> Prediction | Refusal:
    reason = reason_against_ring(curve)
    # A second size is asked for only where it would help.
    if not reason and len(curve.points) < 2:
        reason = _one_size(curve)
    if reason and sizes and {*sizes} <= {point.units for point in curve.points}:
        reason = f"already measured, so no prediction is needed: {', '.join(map(str, sorted(set(sizes))))}"
    if reason:
        return Refusal(curve, reason)
    reference = curve.all_points[0]
    largest = largest_tested(curve)
    wanted = sorted(set(sizes)) or [2 * curve.last.units]
    while not sizes and 2 * wanted[-1] <= largest:
        wanted.append(2 * wanted[-1])
    return Prediction(curve, reference, tuple(_size(curve, reference, units) for units in wanted), largest)


def _size(curve: Curve, reference: CurvePoint, units: int) -> PredictedSize:
    """Return a measured or predicted size."""
    for measured in curve.points:
        if measured.units == units:
            efficiency = _efficiency(measured.throughput, measured.devices, reference)
            return PredictedSize(
                units, measured.devices, measured.throughput, efficiency, reason=MEASURED, is_measured=True
            )
    devices, throughput = units * curve.devices_per_unit, predicted_throughput(curve, units)
    efficiency = _efficiency(throughput, devices, reference)
    score = tested_score(curve, units)
    if isinstance(score, str):
        return PredictedSize(units, devices, throughput, efficiency, reason=score)
    throughputs = interval(curve, score, predicted_log_throughput(curve, units))
    ratios = interval(curve, score, predicted_log_throughput(curve, units, relative_to=reference))
    per_device = devices / reference.devices
    efficiencies = Interval(ratios.low / per_device, ratios.high / per_device)
    return PredictedSize(units, devices, throughput, efficiency, throughputs, efficiencies)


def _efficiency(throughput: float, devices: int, reference: CurvePoint) -> float:
    """Return the throughput per device relative to the reference."""
    return throughput / reference.throughput * reference.devices / devices


def _no_curve(curve: Curve, unit: Unit | None) -> str:
    """Return which point a series without this unit needs."""
    if unit == Unit.NODE:
        devices = curve.last.devices
        return (
            "all its points are on one node, so the cost of a second node is unknown: "
            f"measure nodes=2 with devices_per_node={devices}, on a cluster that has two"
        )
    return "no point is within one node: measure nodes=1 with two values of devices_per_node"


def _one_size(curve: Curve) -> str:
    """Return which second point a curve needs."""
    size = curve.last
    if curve.unit == Unit.DEVICE:
        return f"one size was measured, {counted(size.devices, 'device')}: measure devices_per_node={2 * size.devices}"
    if curve.unit == Unit.WORKER:
        return f"one size is given, {counted(size.devices, 'worker')}, and a second one is needed"
    devices = f"devices_per_node={curve.devices_per_unit}"
    return f"one number of nodes with {devices} was measured, {size.units}: measure nodes=1 with {devices}"


def select_predictions(results: Sequence[Prediction | Refusal]) -> Iterator[Prediction]:
    """Yield the predictions among the results of ``predict``."""
    yield from (result for result in results if isinstance(result, Prediction))


def refused_curves(results: Iterable[Prediction | Refusal]) -> dict[str, list[Curve]]:
    """Return the rejected curves by reason."""
    refused: dict[str, list[Curve]] = {}
    for result in results:
        if isinstance(result, Refusal):
            refused.setdefault(result.reason, []).append(result.curve)
    return refused
