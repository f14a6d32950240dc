"""Amdahl's, Gustafson's, the universal and the power law as labels of a curve, each with the interval of its parameter.

A label says how a curve looks and predicts nothing: the back-test has what happens to who extrapolates them. Intervals
are profile intervals: the values of a parameter with which the law, its other parameters fitted anew, is not further
from the measured rates than their scatter around the best law explains (an F test at 5 %).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.core.wording import counted
from dlperf_study.metrics.statistics import CONFIDENCE, Interval
from dlperf_study.prediction.curves import Curve

#: The logarithm of a speedup on numbers of devices, given the parameters of a law.
LogSpeedup = Callable[[Floats, Floats], Floats]
#: A parameter of which more than this share of its range is possible is not identified.
_LARGEST_SHARE_OF_RANGE = 0.5

#: Squares that arithmetic makes of a curve that follows a law exactly.
_EXACT = 1e-14


@dataclass(frozen=True)
class Law:
    """A law: the names of its parameters, up to which value each can be (the least is 0), and its speedup."""

    name: str
    parameters: tuple[str, ...]
    largest: tuple[float, ...]
    log_speedup: LogSpeedup

    @property
    def sizes_needed(self) -> int:
        """How many sizes leave some scatter: one more than there are parameters and a rate of one device."""
        return len(self.parameters) + 2


@dataclass(frozen=True)
class Label:
    """A parameter of a law with its 95 % interval; without a value, ``reason`` says why the points don't have it."""

    law: str
    parameter: str
    value: float | None
    interval: Interval | None
    reason: str = ""


LAWS = (
    Law("Amdahl", ("serial share",), (1.0,), lambda n, p: np.log(n) - np.log1p(p[0] * (n - 1))),
    Law("Gustafson", ("serial share",), (0.999,), lambda n, p: np.log(n - p[0] * (n - 1))),
    Law("power", ("exponent",), (1.5,), lambda n, p: p[0] * np.log(n)),
    Law(
        "USL",
        ("contention", "coherence"),
        (1.0, 0.1),
        lambda n, p: np.log(n) - np.log1p(p[0] * (n - 1) + p[1] * n * (n - 1)),
    ),
)


def labels_of(curve: Curve) -> list[Label]:
    """Return the labels of a curve, one for each parameter of each law."""
    return [label for law in LAWS for label in _labels(law, curve)]


def _labels(law: Law, curve: Curve) -> list[Label]:
    sizes = len(curve.all_points)
    if sizes < law.sizes_needed:
        reason = f"needs {counted(law.sizes_needed, 'size')}, and there are {sizes}"
        return [Label(law.name, name, None, None, reason) for name in law.parameters]
    fit = _Fit(law, curve)
    labels = []
    for position, name in enumerate(law.parameters):
        interval = fit.interval(position)
        is_identified = interval.high - interval.low <= _LARGEST_SHARE_OF_RANGE * law.largest[position]
        reason = "" if is_identified else "the measured sizes do not identify it: most values fit as well"
        labels.append(Label(law.name, name, fit.best[position] if is_identified else None, interval, reason))
    # The parameters of a law are read together.
    if any(label.reason for label in labels):
        reason = next(label.reason for label in labels if label.reason)
        return [Label(label.law, label.parameter, None, label.interval, reason) for label in labels]
    return labels


class _Fit:
    """A law fitted to the logarithms of the rates of a curve; the rate of one device is always fitted with it."""

    def __init__(self, law: Law, curve: Curve) -> None:
        self._law = law
        self._devices = np.array([point.devices for point in curve.all_points], dtype=float)
        self._log_rates = np.array([point.log_rate.mean for point in curve.all_points])
        self.best, self._least = self._minimum({})

    def interval(self, position: int) -> Interval:
        """Return the profile interval of a parameter; it may end at the ends of its range."""
        from scipy.optimize import brentq
        from scipy.special import fdtri

        freedom = self._devices.size - len(self._law.parameters) - 1
        most = self._least * (1 + float(fdtri(1, freedom, CONFIDENCE)) / freedom) + _EXACT
        best, largest = self.best[position], self._law.largest[position]

        def excess(value: float) -> float:
            return self._minimum({position: value})[1] - most

        low = 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, best))
        high = largest if excess(largest) <= 0 else float(brentq(excess, best, largest))
        return Interval(low, high)

    def _minimum(self, fixed: dict[int, float]) -> tuple[tuple[float, ...], float]:
        """Return the parameters with the least squares, and these, where some parameters are fixed."""
        from scipy.optimize import minimize_scalar

        free = [position for position in range(len(self._law.parameters)) if position not in fixed]
        if not free:
            parameters = tuple(fixed[position] for position in sorted(fixed))
            return parameters, self._squares(parameters)
        position, *_ = free

        def squares(value: float) -> float:
            return self._minimum({**fixed, position: value})[1]

        bounds = (0.0, self._law.largest[position])
        value = float(minimize_scalar(squares, bounds=bounds, method="bounded", options={"xatol": 1e-7}).x)
        # The method does not try the ends of a range.
        value = min((0.0, value), key=squares)
        return self._minimum({**fixed, position: value})

    def _squares(self, parameters: tuple[float, ...]) -> float:
        residuals = self._log_rates - self._law.log_speedup(self._devices, np.array(parameters))
        return float(np.sum((residuals - residuals.mean()) ** 2))
