"""Methods of prediction against published series: the ring of nodes, and two that assume less."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.prediction.curves import Curve
from dlperf_study.prediction.intervals import Case, relative_width, tested_score
from dlperf_study.prediction.node_ring import predicted_throughput


def same_rate(curve: Curve, units: int) -> float:
    """Return the rate if each device kept that of the largest measured size."""
    return curve.last.throughput * units / curve.last.units


def power_law(curve: Curve, units: int) -> float:
    """Return the rate by c × devices^p, fitted to all sizes, also inside one node."""
    devices = np.array([point.devices for point in curve.all_points], dtype=float)
    rates = np.array([point.throughput for point in curve.all_points])
    slope, intercept = np.polyfit(np.log(devices), np.log(rates), 1)
    return float(np.exp(intercept + slope * np.log(units * curve.devices_per_unit)))


#: From a curve and a number of its units to the rate there.
METHODS: Mapping[str, Callable[[Curve, int], float]] = {
    "same throughput per device": same_rate,
    "power law": power_law,
    "node ring": predicted_throughput,
}


def by_laboratory(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return cases by who measured them, in alphabetical order."""
    groups: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda case: case.curve.laboratory):
        groups.setdefault(case.curve.laboratory, []).append(case)
    return groups


@dataclass(frozen=True)
class Errors:
    """The errors of one method, |predicted / measured − 1|; each laboratory weighs the same."""

    method: str
    median: float
    ninth_tenth: float


def errors_of(cases: Sequence[Case]) -> list[Errors]:
    """Return the median error of each method and its 90th percentile; there must be a case."""
    groups = by_laboratory(cases)
    ordered = [case for group in groups.values() for case in group]
    weights = np.array([1 / len(group) for group in groups.values() for _ in group])
    results = []
    for name, method in METHODS.items():
        errors = np.array([abs(method(case.curve, case.target.units) / case.target.throughput - 1) for case in ordered])
        order = np.argsort(errors)
        reached = np.cumsum(weights[order]) / len(groups)
        median, ninth_tenth = (float(errors[order][np.argmax(reached >= share - 1e-9)]) for share in (0.5, 0.9))
        results.append(Errors(name, median, ninth_tenth))
    return results


@dataclass(frozen=True)
class Held:
    """What intervals hold of the cases of one laboratory, made without this laboratory.

    ``cases``: how many have an interval. ``share``: of these, the share that is held. ``half_width``: the median of
    (upper end / prediction − 1). Both are NaN if no case has an interval.
    """

    cases: int
    share: float
    half_width: float


def held_by_intervals(cases: Sequence[Case]) -> Held:
    """Return what intervals of the other laboratories hold of the cases of one laboratory."""
    held, widths = [], []
    for case in cases:
        score = tested_score(case.curve, case.target.units)
        if isinstance(score, float):
            held.append(case.score <= score)
            widths.append(math.expm1(score * relative_width(case.curve)))
    if not held:
        return Held(0, math.nan, math.nan)
    return Held(len(held), float(np.mean(held)), float(np.median(widths)))
