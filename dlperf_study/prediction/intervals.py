"""90 % prediction intervals from the errors on published series.

Each published series is predicted from its smaller sizes. The error of the logarithm of the throughput is divided by a
width of the curve: a score. Scores are weighed by laboratory, because series of one cluster are not independent. The
interval is the 90 % quantile of the scores of other laboratories, times the width (hierarchical conformal prediction:
Lee, Barber and Willett, "Distribution-free inference with hierarchical data", 2023).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from dlperf_study.metrics.statistics import Estimate, Interval, t_quantile
from dlperf_study.prediction.curves import WEAK, Curve, CurvePoint, Unit, published_curves
from dlperf_study.prediction.node_ring import predicted_throughput

#: The share of new laboratories for which an interval holds what they would measure.
COVERAGE = 0.9
#: With n laboratories an interval can hold n of n + 1: nine are needed for 90 %.
MIN_LABORATORIES = 9
#: The width of an interval of a curve that loses nothing, and how it grows with the share of a step that the last
#: doubling added.
_LEAST_WIDTH, _WIDTH_OF_LOSS = 0.02, 0.3
#: Cases of a group are those from a growth on up to this many times it.
_GROWTH_OF_GROUP = 2.0
#: What adding up weights leaves out.
_ROUNDING = 1e-9

SMALLER = "smaller than the largest measured size: measure it"
FIXED_BATCH = "no published series with a fixed global batch has enough sizes"
UNKNOWN_NODES = "its nodes are unknown, so the interconnect of its workers is unknown"
SHARED_CORES = (
    "processes of one machine share its cores and its memory, so more of them compute slower: "
    "measure it, if the machine has as many cores"
)
SERVERS = "the interconnect and number of parameter servers limit the throughput: measure it"


def relative_width(curve: Curve) -> float:
    """Return the width of errors: 0.02 + 0.3 × the last loss.

    The last loss is the share of the largest size's step that a doubling from the size before it added.
    """
    before, last = curve.points[-2:]
    # Of a fixed batch a step should become shorter: what is added is what it fails to.
    shared = 1.0 if curve.scaling == WEAK else before.units / last.units
    added = max(0.0, 1 - curve.seconds(before) * shared / curve.seconds(last))
    return _LEAST_WIDTH + _WIDTH_OF_LOSS * added / math.log2(last.units / before.units)


@dataclass(frozen=True)
class Case:
    """A curve up to some size, and a larger measured size."""

    curve: Curve
    target: CurvePoint

    @property
    def growth(self) -> float:
        """The larger size / the largest size of the curve."""
        return self.target.units / self.curve.last.units

    @property
    def log_error(self) -> float:
        """The logarithm of predicted / measured."""
        return math.log(predicted_throughput(self.curve, self.target.units)) - self.target.log_throughput.mean

    @property
    def score(self) -> float:
        """The distance of a logarithm from the measured one, in widths."""
        return abs(self.log_error) / relative_width(self.curve)


def list_cases(curves: Iterable[Curve]) -> Iterator[Case]:
    """Yield each measured size with every smaller part of its curve."""
    for curve in curves:
        for position, target in enumerate(curve.points):
            for before in curve.points[1:position]:
                yield Case(curve.until(before.units), target)


def largest_left_out(curves: Iterable[Curve]) -> list[Case]:
    """Return each curve without its largest size, and that size."""
    # Two sizes to predict from, and the largest.
    return [Case(curve.until(curve.points[-2].units), curve.last) for curve in curves if len(curve.points) >= 3]


@cache
def published_cases() -> tuple[Case, ...]:
    """Return the published cases that the ring of nodes predicts."""
    return tuple(list_cases(filter(is_tested, published_curves())))


def is_tested(curve: Curve) -> bool:
    """Return whether published series test such a curve."""
    return not reason_against_ring(curve) and not _untested_kind(curve)


def reason_against_ring(curve: Curve) -> str:
    """Return why the ring does not predict a curve; else empty."""
    if curve.unit == Unit.DEVICE and curve.on_gpus is False:
        return SHARED_CORES
    return SERVERS if curve.has_servers else ""


def _untested_kind(curve: Curve) -> str:
    """Return why no published series tests such curves; else empty."""
    if curve.scaling != WEAK:
        return FIXED_BATCH
    return UNKNOWN_NODES if curve.unit == Unit.WORKER else ""


@cache
def scores_by_laboratory(unit: Unit, growth: float, without: str = "") -> Mapping[str, tuple[float, ...]]:
    """Return the scores for this growth, up to twice it, by laboratory."""
    scores: dict[str, list[float]] = {}
    for case in published_cases():
        is_in_group = growth <= case.growth < growth * _GROWTH_OF_GROUP
        if case.curve.unit == unit and is_in_group and case.curve.laboratory != without:
            scores.setdefault(case.curve.laboratory, []).append(case.score)
    return {laboratory: tuple(values) for laboratory, values in scores.items()}


def quantile(scores: Mapping[str, tuple[float, ...]]) -> float:
    """Return the 90 % quantile over laboratories of equal weight."""
    weighted = sorted((score, 1 / len(values)) for values in scores.values() for score in values)
    needed, reached = COVERAGE * (len(scores) + 1) - _ROUNDING, 0.0
    for score, weight in weighted:
        reached += weight
        if reached >= needed:
            return score
    raise ValueError(f"{len(scores)} laboratories are not enough")


def tested_score(curve: Curve, units: int) -> float | str:
    """Return the score of a size, or why series do not test it."""
    if units < curve.last.units:
        return SMALLER
    if reason := _untested_kind(curve):
        return reason
    growth = units / curve.last.units
    scores = scores_by_laboratory(curve.unit, growth, curve.laboratory)
    if len(scores) < MIN_LABORATORIES:
        return (
            f"{growth:g} times the largest measured size is tested by published series of {len(scores)} of the "
            f"{MIN_LABORATORIES} laboratories that a {100 * COVERAGE:g} % interval needs"
        )
    return quantile(scores)


def interval(curve: Curve, score: float, log_throughput: Estimate) -> Interval:
    """Return the interval of a predicted throughput from its score."""
    measured = (log_throughput.error or 0.0) * t_quantile((1 + COVERAGE) / 2, log_throughput.freedom)
    half_width = math.hypot(score * relative_width(curve), measured)
    return Interval(log_throughput.mean - half_width, log_throughput.mean + half_width).exponential


def largest_tested(curve: Curve) -> int:
    """Return the largest units with an interval, else the largest measured."""
    growths = sorted({case.growth for case in published_cases() if case.curve.unit == curve.unit}, reverse=True)
    for growth in growths:
        units = int(curve.last.units * growth)
        if units > curve.last.units and isinstance(tested_score(curve, units), float):
            return units
    return curve.last.units
