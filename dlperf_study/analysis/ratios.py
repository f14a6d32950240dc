"""Ratios of throughputs to those of a declared partner: a speedup over a baseline, or a framework against another."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dlperf_study.analysis.statistics import Interval, coverage, median_interval, ratio_interval
from dlperf_study.errors import BaselineError
from dlperf_study.logs.arrays import Real
from dlperf_study.study.partners import Role
from dlperf_study.study.plan import Entry

#: The throughputs of the completed runs of each configuration, in samples/s, by identity.
Throughputs = Mapping[str, Real]


@dataclass(frozen=True)
class Ratio:
    """A ratio of two medians, its interval, and the partner without which it means nothing."""

    value: float
    interval: Interval | None
    partner_throughput: float
    partner_interval: Interval | None


def throughput_ratio(entry: Entry, role: Role, throughputs: Throughputs) -> Ratio:
    """Return the throughput of a measured configuration over that of its declared partner.

    Raises:
        BaselineError: no run of the partner completed.

    """
    identity, partner = entry.configuration.identity, str(entry.partner(role))
    own, other = throughputs[identity], throughputs.get(partner, np.empty(0))
    if not other.size:
        raise BaselineError(f"no run of its declared {role} {partner} completed")
    interval = itself(1.0, own.size) if partner == identity else ratio_interval(own, other)
    return Ratio(float(np.median(own) / np.median(other)), interval, float(np.median(other)), median_interval(other))


def itself(value: float, runs: int) -> Interval | None:
    """Return the interval of what a configuration is to itself: the value, whatever its runs were."""
    covered = coverage(runs)
    return Interval(value, value, covered) if covered else None
