"""Ways to predict a rate from smaller sizes, each from a curve and a number of units to a rate.

All but the ring of nodes are laws, fitted to all measured sizes, also those inside one node, by least squares of
relative errors. They are here to be compared with it: none of them has a term for what an exchange between nodes adds.
"""

from collections.abc import Callable, Mapping

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.prediction.curves import Curve
from dlperf_study.prediction.node_ring import predicted_rate

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
