"""How precise a study is: the widest interval of each configuration, and how many runs would narrow it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dlperf_study.analysis.comparison import RATIOS, Throughputs, throughput_ratio
from dlperf_study.analysis.statistics import CONFIDENCE, MINIMUM_RUNS, Estimate, t_quantile
from dlperf_study.plan.plan import Entry, Plan
from dlperf_study.study.grid import DENOMINATORS

#: The interval of the fewest runs must be so many times narrower than is asked, or it is narrow by chance too often:
#: see the figures in docs/statistics.md.
NARROWER_AT_FIRST = 2
#: More runs than these are not counted.
MOST_RUNS = 10_000


@dataclass(frozen=True)
class Precision:
    """The half-width of one interval of a configuration, as a share of its value; None without an interval.

    ``column`` is the value that has the interval, ``denominator`` the identity of the baseline or reference of a ratio.
    """

    column: str
    estimate: Estimate
    denominator: str | None = None

    @property
    def half_width(self) -> float | None:
        """The larger distance of a bound from the value / the value."""
        if self.estimate.error is None:
            return None
        return math.expm1(self.estimate.error * _quantile(self.estimate.freedom))

    @property
    def runs(self) -> int:
        """How many runs the interval is of; of a ratio, how many common rounds."""
        return int(self.estimate.freedom) + 1

    def is_wider_than(self, wanted: float) -> bool:
        """Return whether the interval is missing or wider than ``± wanted``."""
        return self.half_width is None or self.half_width > wanted

    def runs_needed(self, wanted: float) -> int | None:
        """Return how many runs in all the wanted half-width takes, if further runs vary as much as those so far.

        The smallest n with t(n − 1) s / √n <= log(1 + wanted), where s is the standard deviation of the runs. None
        without an interval and above 10,000.
        """
        if self.estimate.error is None:
            return None
        deviation = self.estimate.error * math.sqrt(self.runs)
        for count in range(self.runs, MOST_RUNS + 1):
            if _quantile(count - 1) * deviation / math.sqrt(count) <= math.log1p(wanted):
                return count
        return None


def precisions(entry: Entry, throughputs: Throughputs) -> Iterator[Precision]:
    """Yield the precision of the throughput of a configuration and of its ratios; nothing if it is not measured."""
    identity = entry.configuration.identity
    if identity not in throughputs:
        return
    yield Precision("throughput", throughputs[identity].logarithms.estimate)
    for kind in DENOMINATORS:
        denominator = entry.denominator(kind)
        if denominator not in (None, identity) and denominator in throughputs:
            yield Precision(RATIOS[kind], throughput_ratio(entry, kind, throughputs), denominator)


def widest(entry: Entry, throughputs: Throughputs) -> Precision | None:
    """Return the precision of the widest interval of a configuration, a missing one first; None if not measured."""
    return max(precisions(entry, throughputs), key=_half_width_or_infinity, default=None)


def too_wide(plan: Plan, throughputs: Throughputs) -> set[str]:
    """Return the identities that need further runs for the precision of a plan.

    These are the configurations with an interval that is wider, and the baseline or reference of a ratio that is. That
    of the fewest runs must be narrower than those of more.
    """
    identities: set[str] = set()
    for entry in plan.runnable if plan.precision is not None else ():
        for precision in precisions(entry, throughputs):
            wanted = (plan.precision or 0.0) / (NARROWER_AT_FIRST if precision.runs <= MINIMUM_RUNS else 1)
            if precision.is_wider_than(wanted):
                identities.add(entry.configuration.identity)
                identities.update(filter(None, (precision.denominator,)))
    return identities


def _half_width_or_infinity(precision: Precision) -> float:
    return math.inf if precision.half_width is None else precision.half_width


def _quantile(freedom: float) -> float:
    return t_quantile((1 + CONFIDENCE) / 2, freedom)
