"""The largest size of each series, to be predicted from the smaller ones."""

from collections.abc import Iterable

from dlperf_study.prediction.curves import Curve
from dlperf_study.prediction.intervals import Case

#: Sizes that a curve needs: two to predict from, and the largest.
SIZES = 3


def largest_left_out(curves: Iterable[Curve]) -> list[Case]:
    """Return the largest size of each curve that has three, with the curve up to the size before it."""
    return [Case(curve.until(curve.points[-2].units), curve.last) for curve in curves if len(curve.points) >= SIZES]
