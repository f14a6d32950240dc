"""How the throughputs of one measurement of a study differ from those of another date.

Two measurements of a study are two blocks of runs. What changed between them, known or not, is in their ratio, and the
runs of the two tell nothing about it: a machine that nobody touched is not equally fast on two days. Only several
earlier measurements tell how much a configuration differs from date to date.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dlperf_study.analysis.comparison import Throughputs
from dlperf_study.analysis.statistics import MINIMUM_RUNS, Estimate, Sample, are_equal
from dlperf_study.arrays import Floats

#: Below so many earlier measurements nothing is known of how much a configuration differs from date to date.
MINIMUM_DATES = MINIMUM_RUNS


def changes(before: Throughputs, after: Throughputs) -> dict[str, Estimate]:
    """Return the logarithm of throughput after / before of each configuration that both measured, by identity.

    The interval is Welch's, of the runs of both: no run of the one was in a round with a run of the other. It holds
    what differs from run to run on one date, and nothing that differs from date to date.
    """
    ratios = {}
    for identity in before:
        if identity in after:
            ratios[identity] = _mean_logarithm(after[identity]).minus(_mean_logarithm(before[identity]))
    return ratios


def departures(earlier: Sequence[Throughputs], latest: Throughputs) -> dict[str, Estimate]:
    """Return the logarithm of the latest throughput / the mean of the earlier dates of each configuration, by identity.

    A date is one value, the mean of the logarithms of its runs. Of k dates with the standard deviation s the error is
    s · √(1 + 1/k), with k − 1 degrees of freedom: that of one further date from the same normal distribution. So the
    interval holds what differs from date to date as well as from run to run. Only of configurations with at least
    MINIMUM_DATES earlier dates.
    """
    ratios = {}
    for identity, sample in latest.items():
        dates = [_mean_logarithm(throughputs[identity]).mean for throughputs in earlier if identity in throughputs]
        if len(dates) >= MINIMUM_DATES:
            ratios[identity] = _departure(np.array(dates), _mean_logarithm(sample).mean)
    return ratios


def ratio_changes(before: Mapping[str, Estimate], after: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the logarithm of ratio after / before of each ratio that both measured, by identity.

    ``before``, ``after``: logarithms of ratios, as of speedups, each from rounds of its own date: what makes a whole
    date faster or slower is in the numerator and the denominator, and cancels.
    """
    return {identity: after[identity].minus(before[identity]) for identity in before if identity in after}


def _mean_logarithm(sample: Sample) -> Estimate:
    return sample.logarithms.estimate


def _departure(dates: Floats, latest: float) -> Estimate:
    mean, count = float(dates.mean()), dates.size
    if are_equal(dates):
        return Estimate(latest - mean)
    error = float(dates.std(ddof=1)) * math.sqrt(1 + 1 / count)
    return Estimate(latest - mean, error, count - 1)
