"""The largest size of each series, to be predicted from smaller ones."""

from collections.abc import Iterable

from dlperf_study.prediction.curves import Curve
from dlperf_study.prediction.intervals import Case

#: Sizes that a curve needs: two to predict from, and the largest.
SIZES = 3


def largest_left_out(curves: Iterable[Curve]) -> list[Case]:
    """Return each curve without its largest size, and that size."""
    return [Case(curve.until(curve.points[-2].units), curve.last) for curve in curves if len(curve.points) >= SIZES]
