"""Predictions for the curves of a study or a source, and the largest size that a claim is made for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlperf_study.core.wording import counted
from dlperf_study.metrics.statistics import Interval
from dlperf_study.prediction.curves import Curve, CurvePoint, Unit
from dlperf_study.prediction.intervals import LEVELS, interval, largest_growth, obstacle_of_cores, reason_without_test
from dlperf_study.prediction.node_ring import predicted_log_rate, predicted_rate
from dlperf_study.prediction.physical_model import StepModel, model_of, rate_error

SMALLER = "smaller than the largest measured size: measure it"
#: Why the physical model has no intervals.
UNTESTED_MODEL = "no published series has the measurements that would test the physical model"
#: The standard error of the logarithm of a rate beyond which the physical model is said to be too uncertain.
LARGEST_MODEL_ERROR = 0.1
TOO_UNCERTAIN = "its exchanges alone differ too much between runs for the physical model: measure more rounds"
_NO_INTERVALS: Mapping[float, Interval | None] = dict.fromkeys(LEVELS)


@dataclass(frozen=True)
class PredictedSize:
    """One size: its rate and its efficiency, with an interval for each of ``LEVELS``; None where none was tested.

    ``reason``: why there is no interval. ``is_measured``: the size was measured, and this is what was measured.
    ``model_rate``: what the physical model says; None where it is not identified, or too uncertain.
    """

    units: int
    devices: int
    rate: float
    efficiency: float
    rate_intervals: Mapping[float, Interval | None]
    efficiency_intervals: Mapping[float, Interval | None]
    reason: str = ""
    is_measured: bool = False
    model_rate: float | None = None


@dataclass(frozen=True)
class Prediction:
    """What a curve says of larger sizes.

    ``reference``: the size that efficiencies are relative to, the smallest measured one. ``claimed_units``: the largest
    size that a claim is made for; the largest measured one where no published series tests a prediction, for which
    ``reason`` says why. ``model``: the physical model, or why measurements do not identify it. ``by_model``: rates are
    its rates, as the ring of nodes says nothing of this series.
    """

    curve: Curve
    reference: CurvePoint
    sizes: tuple[PredictedSize, ...]
    claimed_units: int
    reason: str = ""
    model: StepModel | str = ""
    by_model: bool = False

    def rate_on(self, units: int) -> float:
        """Return the predicted rate on so many units, by the method of this prediction."""
        if self.by_model and isinstance(self.model, StepModel):
            return self.model.rate(units)
        return predicted_rate(self.curve, units)


@dataclass(frozen=True)
class Refusal:
    """A curve of which nothing can be predicted, and which point to measure."""

    curve: Curve
    reason: str


def predict(curves: Sequence[Curve], unit: Unit | None = None, sizes: Sequence[int] = ()) -> list[Prediction | Refusal]:
    """Return for each series what it says of so many nodes, or devices of one node.

    ``unit``: of the sizes; None: nodes where a series has several, else devices. ``sizes``: without them twice the
    largest measured one, and each doubling as far as claims reach. Workers whose nodes are not known count as either. A
    series without a curve over this unit is refused, with the point that would give it one.
    """
    results: list[Prediction | Refusal] = []
    for curve in chosen_curves(curves, unit):
        results.append(curve if isinstance(curve, Refusal) else _of_curve(curve, sizes))
    return results


def chosen_curves(curves: Sequence[Curve], unit: Unit | None) -> Iterator[Curve | Refusal]:
    """Yield for each series its curve over this unit, or why it has none; see ``predict``."""
    series: dict[str, list[Curve]] = {}
    for curve in curves:
        series.setdefault(curve.label, []).append(curve)
    for of_series in series.values():
        fitting = [curve for curve in of_series if unit is None or curve.unit in (unit, Unit.WORKER)]
        yield fitting[0] if fitting else Refusal(of_series[0], _no_curve(of_series[0], unit))


def _of_curve(curve: Curve, sizes: Sequence[int]) -> Prediction | Refusal:
    if curve.has_servers and not obstacle_of_cores(curve):
        return _of_servers(curve, sizes)
    # A second size is asked for only where it would help.
    reason = obstacle_of_cores(curve) or (_one_size(curve) if len(curve.points) < 2 else "")
    if reason and sizes and {*sizes} <= {point.units for point in curve.points}:
        reason = f"measured, so nothing is to be predicted: {', '.join(map(str, sorted(set(sizes))))}"
    if reason:
        return Refusal(curve, reason)
    reference = curve.all_points[0]
    reason = reason_without_test(curve)
    growth = 1.0 if reason else largest_growth(curve.unit, curve.origin)
    claimed = int(curve.last.units * growth)
    wanted = sorted(set(sizes)) or _doublings(curve.last.units, claimed)
    model = model_of(curve)
    predicted = [_size(curve, reference, units, claimed, reason) for units in wanted]
    with_model = tuple(replace(size, model_rate=model_rate(model, curve, size.units)) for size in predicted)
    return Prediction(curve, reference, with_model, claimed, reason, model)


def _of_servers(curve: Curve, sizes: Sequence[int]) -> Prediction | Refusal:
    """Return what the physical model says of parameter servers, of which the ring of nodes says nothing."""
    model = model_of(curve)
    if isinstance(model, str):
        return Refusal(curve, f"parameter servers take part, whose links and number limit the exchange: {model}")
    reference, predicted = curve.all_points[0], []
    for units in sorted(set(sizes)) or [2 * curve.last.units]:
        measured = {point.units: point for point in curve.points}.get(units)
        rate = model_rate(model, curve, units)
        if measured is not None:
            predicted.append(replace(_measured_size(measured, reference), model_rate=rate))
        elif rate is not None:
            predicted.append(_by_model(curve, reference, units, rate))
    if not predicted:
        return Refusal(curve, TOO_UNCERTAIN)
    return Prediction(curve, reference, tuple(predicted), curve.last.units, UNTESTED_MODEL, model, by_model=True)


def _by_model(curve: Curve, reference: CurvePoint, units: int, rate: float) -> PredictedSize:
    devices = units * curve.devices_per_unit
    efficiency = _efficiency(rate, devices, reference)
    intervals = (_NO_INTERVALS, _NO_INTERVALS)
    reason = SMALLER if units < curve.last.units else UNTESTED_MODEL
    return PredictedSize(units, devices, rate, efficiency, *intervals, reason, model_rate=rate)


def model_rate(model: StepModel | str, curve: Curve, units: int) -> float | None:
    """Return the rate by the physical model; None where it is not identified, or the exchanges are too uncertain."""
    if isinstance(model, str) or (rate_error(curve, units) or 0.0) > LARGEST_MODEL_ERROR:
        return None
    return model.rate(units)


def _doublings(units: int, claimed: int) -> list[int]:
    """Return twice a size, and each further doubling that a claim is made for."""
    sizes = [2 * units]
    while 2 * sizes[-1] <= claimed:
        sizes.append(2 * sizes[-1])
    return sizes


def _size(curve: Curve, reference: CurvePoint, units: int, claimed: int, reason: str) -> PredictedSize:
    """Return a measured size as it was measured, and any other one as predicted."""
    measured = {point.units: point for point in curve.points}.get(units)
    if measured is not None:
        return _measured_size(measured, reference)
    devices = units * curve.devices_per_unit
    rate = predicted_rate(curve, units)
    per_device = devices / reference.devices
    log_rate = predicted_log_rate(curve, units)
    log_speedup = predicted_log_rate(curve, units, relative_to=reference)
    reason = reason or _not_claimed(curve, units, claimed)
    rates, efficiencies = dict(_NO_INTERVALS), dict(_NO_INTERVALS)
    for share in LEVELS if not reason else ():
        rates[share] = interval(curve, units, log_rate, share)
        efficiencies[share] = _divided(interval(curve, units, log_speedup, share), per_device)
    return PredictedSize(units, devices, rate, _efficiency(rate, devices, reference), rates, efficiencies, reason)


def _measured_size(point: CurvePoint, reference: CurvePoint) -> PredictedSize:
    efficiency = _efficiency(point.rate, point.devices, reference)
    intervals = (_NO_INTERVALS, _NO_INTERVALS)
    return PredictedSize(point.units, point.devices, point.rate, efficiency, *intervals, "measured", is_measured=True)


def _efficiency(rate: float, devices: int, reference: CurvePoint) -> float:
    """Return the rate of a device relative to that of the reference."""
    return rate / reference.rate * reference.devices / devices


def _divided(ratios: Interval | None, divisor: float) -> Interval | None:
    return Interval(ratios.low / divisor, ratios.high / divisor) if ratios else None


def _not_claimed(curve: Curve, units: int, claimed: int) -> str:
    """Return why no claim is made for a size; empty where one is."""
    if units < curve.last.units:
        return SMALLER
    if units <= claimed:
        return ""
    growth = f"{claimed / curve.last.units:g} times the largest measured size"
    return f"published series test this up to {growth}, {counted(claimed, curve.unit)}"


def _no_curve(curve: Curve, unit: Unit | None) -> str:
    """Return which point a series needs that has no curve over this unit."""
    if unit == Unit.NODE:
        devices = curve.last.devices
        return (
            "all its points are on one node, and what crossing to a second one costs can't be told from these: "
            f"measure nodes=2 with devices_per_node={devices}, on a cluster that has two"
        )
    return "no point is inside one node: measure nodes=1 with two numbers of devices_per_node"


def _one_size(curve: Curve) -> str:
    """Return which second point a curve needs."""
    size = curve.last
    if curve.unit == Unit.DEVICE:
        return f"one size was measured, {counted(size.devices, 'device')}: measure devices_per_node={2 * size.devices}"
    if curve.unit == Unit.WORKER:
        return f"one size is given, {counted(size.devices, 'worker')}, and a second one is needed"
    devices = f"devices_per_node={curve.devices_per_unit}"
    return f"one number of nodes with {devices} was measured, {size.units}: measure nodes=1 with {devices}"


def predictions_of(results: Sequence[Prediction | Refusal]) -> Iterator[Prediction]:
    """Yield the predictions among the results of ``predict``."""
    yield from (result for result in results if isinstance(result, Prediction))


def refused_curves(results: Iterable[object]) -> dict[str, list[Curve]]:
    """Return the curves that are refused among the results of ``predict`` or ``what_if``, by their reason."""
    refused: dict[str, list[Curve]] = {}
    for result in results:
        if isinstance(result, Refusal):
            refused.setdefault(result.reason, []).append(result.curve)
    return refused
