"""Step time on more nodes, from two measured sizes, by a ring model.

A ring of m nodes carries each gradient (m − 1)/m of its way twice, so exposed communication grows with (m − 1)/m: t(m)
= C + X (m − 1)/m under weak scaling, t(m) = C/m + X (m − 1)/m under strong scaling. The two sizes are the smallest and
the largest measured one; X is at least 0. Latency and shared links are neglected. Inside one node, devices take the
place of nodes.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from dlperf_study.metrics.statistics import Estimate
from dlperf_study.prediction.curves import WEAK, Curve, CurvePoint

#: By how much a logarithm of a throughput is changed to find out how a prediction follows it.
_SMALL = 1e-4


def ring_share(units: int) -> float:
    """Return the share (m − 1)/m of the ring that a gradient travels."""
    return (units - 1) / units


def predicted_throughput(curve: Curve, units: int) -> float:
    """Return the throughput on so many units; needs two sizes."""
    first, last = curve.points[0], curve.last
    shared = _computation_share(curve, last.units) / _computation_share(curve, first.units)
    denominator = ring_share(last.units) - ring_share(first.units) * shared
    communication = max(0.0, (curve.seconds(last) - curve.seconds(first) * shared) / denominator)
    computation = curve.seconds(last) - communication * ring_share(last.units)
    shared = _computation_share(curve, units) / _computation_share(curve, last.units)
    return curve.throughput(computation * shared + communication * ring_share(units), units)


def _computation_share(curve: Curve, units: int) -> float:
    return 1.0 if curve.scaling == WEAK else 1 / units


def predicted_log_throughput(curve: Curve, units: int, relative_to: CurvePoint | None = None) -> Estimate:
    """Return the predicted logarithm, with the error of measured throughputs.

    ``relative_to``: of the ratio to the throughput of this point, which may be one of the curve. Measured throughputs
    count as independent. Without an error if one of them has none.
    """
    measured = [curve.points[0], curve.last]
    reference = [] if relative_to is None else [relative_to]
    mean = _log_ratio(curve, units, reference)
    variance, freedom = 0.0, math.inf
    for point in dict.fromkeys([*measured, *reference]):
        if point.log_throughput.error is None:
            return Estimate(mean)
        faster = replace(point, log_throughput=Estimate(point.log_throughput.mean + _SMALL))
        faster_reference = [faster] if point in reference else reference
        slope = (_log_ratio(curve.replace_point(point, faster), units, faster_reference) - mean) / _SMALL
        variance += (slope * point.log_throughput.error) ** 2
        freedom = min(freedom, point.log_throughput.freedom)
    return Estimate(mean, math.sqrt(variance), freedom)


def _log_ratio(curve: Curve, units: int, reference: Sequence[CurvePoint]) -> float:
    return math.log(predicted_throughput(curve, units)) - sum(point.log_throughput.mean for point in reference)
