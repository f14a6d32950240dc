"""The target precision of a study: when the rule looks at the intervals, and what ended measuring.

The rule looks after ``repeats`` rounds, and after twice and four times as many, as far as ``max_repeats`` allows. If
all intervals are within the target then, or at the last look, measuring ends. Looking several times favours intervals
that are too narrow by chance; so their quantiles are corrected for the number of looks (Bonferroni). If anything else
ends measuring, the number of rounds does not depend on what was measured, and the intervals are plain t intervals.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from dlperf_study.core.errors import Diagnostic
from dlperf_study.core.wording import counted, guessed, guessed_duration
from dlperf_study.metrics.comparison import RATIOS, Throughputs
from dlperf_study.metrics.outcome import select_completed
from dlperf_study.metrics.statistics import (
    CONFIDENCE,
    MINIMUM_RUNS,
    Estimate,
    Sample,
    chi_squared_quantile,
    log_ratio,
    t_quantile,
)
from dlperf_study.study.grid import DENOMINATORS
from dlperf_study.study.plan import Entry, Plan

#: More rounds than these are not counted, and of more further ones nobody is told: nobody would make them.
MOST_ROUNDS, MOST_FURTHER_ROUNDS = 10_000, 50


@dataclass(frozen=True)
class Precision:
    """The half-width of one interval of a configuration, as a share of its value.

    ``column`` is the value that has the interval, ``denominator`` the identity of the baseline or reference of a ratio.
    ``estimate``: of the logarithm of the rate or ratio.
    """

    column: str
    estimate: Estimate
    denominator: str | None = None

    @property
    def half_width(self) -> float | None:
        """The larger distance of a bound from the value / the value; None without an interval."""
        interval = self.estimate.interval()
        return math.expm1(interval.high - self.estimate.mean) if interval else None

    def is_wider_than(self, wanted: float) -> bool:
        """Return whether the interval is missing or wider than ``± wanted``."""
        return self.half_width is None or self.half_width > wanted

    def further_rounds(self, plan: Plan) -> tuple[int, int] | None:
        """Return between how many further rounds the target takes in half of all cases; None without an interval.

        Few runs tell little of how much runs vary: the standard deviation of all is between the two quartiles of its
        distribution, s · √(f / χ²) with f degrees of freedom.
        """
        if self.estimate.error is None:
            return None
        rounds, freedom = int(self.estimate.rounds), self.estimate.freedom
        deviation = self.estimate.error * math.sqrt(rounds)
        needed = []
        for quartile in (0.25, 0.75):
            factor = math.sqrt(freedom / chi_squared_quantile(1 - quartile, freedom))
            needed.append(_rounds_for(plan, factor * deviation, rounds + 1) - rounds)
        return needed[0], needed[1]


def _rounds_for(plan: Plan, deviation: float, fewest: int) -> int:
    """Return the smallest n from ``fewest`` on with t(n - 1) · deviation / √n <= log(1 + target), or MOST_ROUNDS.

    The quantile is corrected for the looks, as at the look that ends measuring.
    """
    probability = 1 - (1 - CONFIDENCE) / 2 / max(1, len(plan.rounds.looks))
    wanted = math.log1p(plan.precision or 0.0)
    for count in range(max(MINIMUM_RUNS, fewest), MOST_ROUNDS):
        if t_quantile(probability, count - 1) * deviation / math.sqrt(count) <= wanted:
            return count
    return MOST_ROUNDS


def precisions(entry: Entry, throughputs: Throughputs) -> Iterator[Precision]:
    """Yield the precision of the throughput of a configuration and of its ratios; nothing if it is not measured."""
    identity = entry.configuration.identity
    if identity not in throughputs:
        return
    yield Precision("throughput", throughputs[identity].logarithms.estimate)
    for kind in DENOMINATORS:
        denominator = entry.denominator(kind)
        if denominator not in (None, identity) and denominator in throughputs:
            yield Precision(RATIOS[kind], log_ratio(throughputs[identity], throughputs[denominator]), denominator)


def widest(entry: Entry, throughputs: Throughputs) -> Precision | None:
    """Return the precision of the widest interval of a configuration, a missing one first; None if not measured."""
    return max(precisions(entry, throughputs), key=_half_width_or_infinity, default=None)


def _half_width_or_infinity(precision: Precision) -> float:
    return math.inf if precision.half_width is None else precision.half_width


def looks_that_ended_measuring(plan: Plan, samples: Mapping[str, Sample]) -> int:
    """Return the number of looks of the rule if the target ended measuring, else 1.

    It did if the rule looks after as many rounds as there are, and finds all intervals within the target.
    """
    looks = plan.rounds.looks
    if len(looks) < 2:
        return 1
    corrected = {identity: replace(sample, looks=len(looks)) for identity, sample in samples.items()}
    is_look = rounds_of_all(plan, corrected) in looks
    return len(looks) if is_look and not too_wide(plan, corrected) else 1


def looks_of(samples: Mapping[str, Sample]) -> int:
    """Return for how many looks the intervals of a study are corrected."""
    return max((sample.looks for sample in samples.values()), default=1)


def rounds_of_all(plan: Plan, samples: Mapping[str, Sample]) -> int:
    """Return how many rounds every measured throughput and ratio has at least; 0 if nothing is measured."""
    counts = []
    for entry in plan.runnable:
        counts += [int(precision.estimate.rounds) for precision in precisions(entry, samples)]
    return min(counts, default=0)


def too_wide(plan: Plan, samples: Mapping[str, Sample]) -> list[str]:
    """Return the identities of the configurations with an interval that is wider than the target."""
    wanted = plan.precision or 0.0
    identities = []
    for entry in plan.runnable:
        if any(precision.is_wider_than(wanted) for precision in precisions(entry, samples)):
            identities.append(entry.configuration.identity)
    return identities


def needs_further_round(plan: Plan, samples: Mapping[str, Sample]) -> bool:
    """Return whether the target precision asks for a further round: a look has not come yet or was not passed.

    ``samples``: the rates of the counted runs, without a correction.
    """
    looks, rounds = plan.rounds.looks, rounds_of_all(plan, samples)
    if not looks or rounds >= plan.rounds.most:
        return False
    if rounds not in looks:
        return True
    corrected = {identity: replace(sample, looks=len(looks)) for identity, sample in samples.items()}
    return bool(too_wide(plan, corrected))


def precision_diagnostics(plan: Plan, runs: pd.DataFrame, throughputs: Throughputs) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each measured configuration whose widest interval misses the target."""
    if plan.precision is None:
        return
    completed = select_completed(runs)
    run_seconds = completed["run_seconds"] + completed["waited_seconds"].fillna(0.0)
    # A further round has a run of every configuration.
    round_seconds = float(run_seconds.groupby(completed["identity"]).mean().sum())
    for entry in plan.runnable:
        identity = entry.configuration.identity
        reached = widest(entry, throughputs)
        if reached and reached.is_wider_than(plan.precision):
            message = _message(reached, plan, round_seconds)
            yield Diagnostic(reached.column, message, identity=identity)


def _message(reached: Precision, plan: Plan, round_seconds: float) -> str:
    """Return what was reached after how many rounds, and what the rest would cost."""
    wanted = plan.precision or 0.0
    rounds, target = counted(int(reached.estimate.rounds), "round"), f"the target is ± {100 * wanted:g} %"
    further = reached.further_rounds(plan)
    if reached.half_width is None or further is None:
        return f"no interval after {rounds}, {target}: an interval needs {MINIMUM_RUNS} rounds"
    half_width = f"± {_distinct(100 * reached.half_width, 100 * wanted)} %"
    if reached.half_width >= 1:
        half_width = f"known to a factor of {1 + reached.half_width:.2g}"
    fewest, most = further
    if fewest > MOST_FURTHER_ROUNDS:
        return f"{half_width} after {rounds}, {target}: it needs more than {MOST_FURTHER_ROUNDS} further rounds"
    takes = guessed_duration(fewest * round_seconds, most * round_seconds)
    more = f"{guessed(fewest, most)} more rounds if its runs vary like these, {takes}"
    return f"{half_width} after {rounds}, {target}: {more}"


def _distinct(percent: float, wanted: float) -> str:
    """Return a number with two digits, or with as many as set it apart from the target."""
    return next(short for digits in range(2, 18) if float(short := f"{percent:.{digits}g}") != wanted)
