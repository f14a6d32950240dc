"""Every method against what was measured: the largest size of each curve, predicted from the smaller ones.

A method predicts a rate from a curve and a number of its units. All but the ring of nodes are laws, fitted to all
measured sizes, also those inside one node, by least squares of relative errors. They are here to be compared with it:
none of them has a term for what an exchange between nodes adds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.prediction.curves import Curve, Unit
from dlperf_study.prediction.intervals import Case, scores_of
from dlperf_study.prediction.node_ring import predicted_rate

#: Sizes that a curve needs: two to predict from, and the largest.
SIZES = 3
#: From a curve and a number of its units to the rate there.
Method = Callable[[Curve, int], float]
#: The terms of a law, of numbers of devices; shape [devices, terms].
Terms = Callable[[Floats], Floats]


def same_rate(curve: Curve, units: int) -> float:
    """Return the rate if each device kept that of the largest measured size."""
    return curve.last.rate * units / curve.last.units


def power_law(curve: Curve, units: int) -> float:
    """Return the rate by c × devices^p."""
    devices, rates = _measured(curve)
    slope, intercept = np.polyfit(np.log(devices), np.log(rates), 1)
    return float(np.exp(intercept + slope * np.log(units * curve.devices_per_unit)))


def log_linear(curve: Curve, units: int) -> float:
    """Return the rate if the time of a sample on a device grows by as much with each doubling."""
    return _from_device_time(curve, units, lambda devices: np.stack([np.ones_like(devices), np.log2(devices)], axis=1))


def amdahl(curve: Curve, units: int) -> float:
    """Return the rate by Amdahl's law: a share of the work is done by one device at a time."""
    return _from_device_time(curve, units, lambda devices: np.stack([np.ones_like(devices), devices - 1], axis=1))


def universal_scalability(curve: Curve, units: int) -> float:
    """Return the rate by the universal scalability law: Amdahl's, and a part that each pair of devices adds to."""
    return _from_device_time(
        curve,
        units,
        lambda devices: np.stack([np.ones_like(devices), devices - 1, devices * (devices - 1)], axis=1),
    )


def gustafson(curve: Curve, units: int) -> float:
    """Return the rate by Gustafson's law: what one device does does not grow with the others."""
    devices, rates = _measured(curve)

    def terms(counts: Floats) -> Floats:
        return np.stack([np.ones_like(counts), counts], axis=1)

    return float(_fitted(terms, devices, rates, units * curve.devices_per_unit))


METHODS: Mapping[str, Method] = {
    "same rate per device": same_rate,
    "power law": power_law,
    "log2-linear": log_linear,
    "Amdahl": amdahl,
    "Gustafson": gustafson,
    "USL": universal_scalability,
    "node ring": predicted_rate,
}


def _measured(curve: Curve) -> tuple[Floats, Floats]:
    """Return the devices and the rates of all measured sizes."""
    points = curve.all_points
    return np.array([point.devices for point in points], dtype=float), np.array([point.rate for point in points])


def _from_device_time(curve: Curve, units: int, terms: Terms) -> float:
    """Return the rate by a law of the time that a device takes for its part of a sample: devices / rate."""
    devices, rates = _measured(curve)
    wanted = units * curve.devices_per_unit
    return wanted / _fitted(terms, devices, devices / rates, wanted)


def _fitted(terms: Terms, devices: Floats, values: Floats, wanted: int) -> float:
    """Return the value at ``wanted`` devices of the law that has the least relative errors; no term is negative."""
    # Importing it takes half a second, and what predicts needs none of these.
    from scipy.optimize import nnls

    factors, _ = nnls(terms(devices) / values[:, None], np.ones_like(values))
    return float((terms(np.array([float(wanted)])) @ factors)[0])


@dataclass(frozen=True)
class MethodErrors:
    """The relative errors of one method over some curves, |predicted / measured − 1|, in their order."""

    method: str
    errors: tuple[float, ...]

    @property
    def median(self) -> float:
        """The error that half of the curves do not exceed."""
        return float(np.median(self.errors))

    @property
    def ninth_tenth(self) -> float:
        """The error that nine of ten curves do not exceed."""
        return float(np.quantile(self.errors, 0.9))


def largest_left_out(curves: Iterable[Curve]) -> list[Case]:
    """Return the largest size of each curve that has three, with the curve up to the size before it."""
    return [Case(curve.until(curve.points[-2].units), curve.last) for curve in curves if len(curve.points) >= SIZES]


def errors_of(cases: Sequence[Case], methods: Mapping[str, Method] = METHODS) -> list[MethodErrors]:
    """Return the errors of each method over the same cases; there must be one."""
    results = []
    for name, method in methods.items():
        errors = (abs(method(case.curve, case.target.units) / case.target.rate - 1) for case in cases)
        results.append(MethodErrors(name, tuple(errors)))
    return results


def held_shares(cases: Sequence[Case], shares: Sequence[float]) -> list[float]:
    """Return which share of cases the intervals of each nominal share hold, made without the source of the case.

    NaN where no interval of this share can be made.
    """
    return [_held_share(cases, share) for share in shares]


def _held_share(cases: Sequence[Case], share: float) -> float:
    held = []
    for case in cases:
        quantile = scores_of(case.curve.unit, case.growth, case.curve.origin).quantile(share)
        if quantile is None:
            return float("nan")
        held.append(case.score <= quantile)
    return float(np.mean(held))


def is_of_dlperf(case: Case) -> bool:
    """Return whether a case is one of the series that DLPerf measured on 1, 8, 16 and 32 devices."""
    nodes = [point.units for point in case.curve.points]
    is_whole = (nodes, case.target.devices, case.curve.all_points[0].devices) == ([1, 2], 32, 1)
    return case.curve.unit == Unit.NODE and case.curve.origin.startswith("dlperf") and is_whole
