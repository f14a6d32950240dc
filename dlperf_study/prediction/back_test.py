"""Every method against what was measured: the largest size of each curve, predicted from the smaller ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.prediction.curves import Curve, Unit
from dlperf_study.prediction.intervals import Case, scores_of
from dlperf_study.prediction.methods import METHODS, Method

#: Sizes that a curve needs: two to predict from, and the largest.
SIZES = 3


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
