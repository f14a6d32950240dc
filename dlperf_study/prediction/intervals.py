"""How far predictions were from what was measured, on published series, and the intervals that follow from it.

Split conformal prediction: the error of a prediction in units of a width that its curve has, and the quantile of these
among the series of other sources. The width is larger where the last measured sizes already lost more.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from dlperf_study.metrics.statistics import Estimate, Interval, t_quantile
from dlperf_study.prediction.curves import WEAK, Curve, CurvePoint, Unit, published_curves
from dlperf_study.prediction.node_ring import predicted_rate

#: The shares of predictions that intervals hold.
LEVELS = (0.5, 0.9)
#: The width of an interval of a curve that loses nothing, and how it grows with the share of a step that the last
#: doubling added.
_LEAST_WIDTH, _WIDTH_OF_LOSS = 0.02, 0.3
#: Cases of a group are those from a growth on up to this many times it.
_GROWTH_OF_GROUP = 2.0
#: Of fewer sources an interval would be that of their programs.
MINIMUM_SOURCES = 5


def relative_width(curve: Curve) -> float:
    """Return the width to which the error of a prediction from this curve is relative: 0.02 + 0.3 × the last loss.

    The last loss is the share of the largest size's step that a doubling from the size before it added.
    """
    before, last = curve.points[-2:]
    # Of a fixed batch a step should become shorter: what is added is what it fails to.
    shared = 1.0 if curve.scaling == WEAK else before.units / last.units
    added = max(0.0, 1 - curve.seconds(before) * shared / curve.seconds(last))
    return _LEAST_WIDTH + _WIDTH_OF_LOSS * added / math.log2(last.units / before.units)


@dataclass(frozen=True)
class Case:
    """A curve up to some size, and a larger one that was measured too."""

    curve: Curve
    target: CurvePoint

    @property
    def growth(self) -> float:
        """How many times the largest size of the curve the other one is."""
        return self.target.units / self.curve.last.units

    @property
    def log_error(self) -> float:
        """The logarithm of predicted / measured."""
        return math.log(predicted_rate(self.curve, self.target.units)) - self.target.log_rate.mean

    @property
    def score(self) -> float:
        """The size of this logarithm, in units of the width of the curve."""
        return abs(self.log_error) / relative_width(self.curve)


def cases_of(curves: Iterable[Curve]) -> Iterator[Case]:
    """Yield each measured size of curves with every smaller part of its curve that has two sizes."""
    for curve in curves:
        for position, target in enumerate(curve.points):
            for before in curve.points[1:position]:
                yield Case(curve.until(before.units), target)


@dataclass(frozen=True)
class Scores:
    """The scores of one unit by how far predictions went, in ascending order, and from how many sources they are."""

    values: tuple[float, ...]
    sources: int

    def quantile(self, share: float) -> float | None:
        """Return the score that a further series does not exceed with this probability; None where that needs more."""
        rank = math.ceil((len(self.values) + 1) * share)
        is_enough = rank <= len(self.values) and self.sources >= MINIMUM_SOURCES
        return self.values[rank - 1] if is_enough else None


@cache
def scores_of(unit: Unit, growth: float, without: str = "") -> Scores:
    """Return the scores of published series that grew from ``growth`` times to less than twice that.

    ``without``: a source that is left out. Only series of the kind that is predicted count.
    """
    cases = [
        case
        for case in _published_cases()
        if case.curve.unit == unit
        and case.curve.origin != without
        and growth <= case.growth < growth * _GROWTH_OF_GROUP
    ]
    return Scores(tuple(sorted(case.score for case in cases)), len({case.curve.origin for case in cases}))


@cache
def _published_cases() -> tuple[Case, ...]:
    return tuple(case for case in cases_of(published_curves()) if is_testable(case.curve))


def is_for_ring(curve: Curve) -> bool:
    """Return whether the ring of nodes says something of more units of a curve: not of servers, or of shared cores."""
    return not (curve.has_servers or obstacle_of_cores(curve))


def obstacle_of_cores(curve: Curve) -> str:
    """Return why no model says anything of more units of a curve; empty where one may."""
    if curve.unit == Unit.DEVICE and curve.on_gpus is False:
        slower = "processes of one machine share its cores and its memory, so more of them compute slower"
        return f"{slower}: measure it, if the machine has as many cores"
    return ""


def reason_without_test(curve: Curve) -> str:
    """Return why no published series tests a prediction for a curve of this kind; empty where some do."""
    if curve.scaling != WEAK:
        return "the global batch is fixed, and no published series has fixed batches on enough sizes"
    if curve.unit == Unit.WORKER:
        return "its nodes are not known, so it is not known which links its workers share"
    return ""


def is_testable(curve: Curve) -> bool:
    """Return whether a published curve is of the kind that intervals are made for."""
    return is_for_ring(curve) and not reason_without_test(curve)


@cache
def largest_growth(unit: Unit, without: str = "") -> float:
    """Return by how many times a curve may grow so that an interval of every level was tested; 1 where none was."""
    growths = sorted({case.growth for case in _published_cases() if case.curve.unit == unit}, reverse=True)
    for growth in growths:
        if scores_of(unit, growth, without).quantile(max(LEVELS)) is not None:
            return growth
    return 1.0


def interval(curve: Curve, units: int, log_rate: Estimate, share: float) -> Interval | None:
    """Return the interval of a predicted rate that holds a share of all; None where no published series tests it.

    ``log_rate``: the predicted logarithm with the error of measured rates, which is added. Scores hold that of
    published ones.
    """
    growth = units / curve.last.units
    quantile = scores_of(curve.unit, growth, curve.origin).quantile(share)
    if quantile is None:
        return None
    measured = (log_rate.error or 0.0) * t_quantile((1 + share) / 2, log_rate.freedom)
    half_width = math.hypot(quantile * relative_width(curve), measured)
    return Interval(log_rate.mean - half_width, log_rate.mean + half_width).exponential
