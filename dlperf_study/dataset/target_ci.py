"""The target precision of a study: when the rule looks at the intervals, and what ended measuring.

The rule looks after ``repetitions`` rounds, and after twice and four times as many, as far as ``max_repetitions``
allows. If all intervals are within the target then, or at the last look, measuring ends. Looking several times favours
intervals that are too narrow by chance; so their quantiles are corrected for the number of looks (Bonferroni). If
anything else ends measuring, nothing stopped for narrow intervals, and they are plain t intervals.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd

from dlperf_study.core.errors import Diagnostic
from dlperf_study.core.wording import counted, guessed, guessed_duration
from dlperf_study.metrics import run_status, statistics
from dlperf_study.metrics.comparison import RATIOS, Throughputs
from dlperf_study.study.grid import DENOMINATORS
from dlperf_study.study.plan import Entry, Plan

#: More rounds than these are not counted, and of more further ones nobody is told: nobody would make them.
MOST_ROUNDS, MOST_FURTHER_ROUNDS = 10_000, 50


@dataclass(frozen=True)
class Precision:
    """The relative half-width of one interval of a configuration.

    ``column`` is the value that has the interval, ``denominator`` the identity of the baseline or reference of a ratio.
    ``estimate``: of the logarithm of the throughput or ratio.
    """

    column: str
    estimate: statistics.Estimate
    denominator: str | None = None

    @property
    def half_width(self) -> float | None:
        """The larger distance of a bound / the value, or None."""
        interval = self.estimate.interval()
        if interval:
            return math.expm1(interval.high - self.estimate.mean)
        return None

    def is_wider_than(self, wanted: float) -> bool:
        """Return whether the interval is missing or wider than ``± wanted``."""
        return self.half_width is None or self.half_width > wanted

    def further_rounds(self, plan: Plan) -> tuple[int, int] | None:
        """Return the range of rounds that the target probably needs.

        Few runs tell little of how much runs vary: the standard deviation of all is between the two quartiles of its
        distribution, s · √(f / χ²) with f degrees of freedom.
        """
        if self.estimate.error is None:
            return None
        rounds, freedom = int(self.estimate.rounds), self.estimate.freedom
        deviation = self.estimate.error * math.sqrt(rounds)
        low = deviation * math.sqrt(freedom / statistics.chi_squared_quantile(0.75, freedom))
        high = deviation * math.sqrt(freedom / statistics.chi_squared_quantile(0.25, freedom))
        return _rounds_for(plan, low, rounds + 1) - rounds, _rounds_for(plan, high, rounds + 1) - rounds


def _rounds_for(plan: Plan, deviation: float, fewest: int) -> int:
    """Return the fewest rounds from ``fewest`` that reach the target."""
    probability = 1 - (1 - statistics.CONFIDENCE) / 2 / max(1, len(plan.rounds.looks))
    wanted = math.log1p(plan.target_ci or 0.0)
    for count in range(max(statistics.MINIMUM_RUNS, fewest), MOST_ROUNDS):
        if statistics.t_quantile(probability, count - 1) * deviation / math.sqrt(count) <= wanted:
            return count
    return MOST_ROUNDS


def precisions(entry: Entry, throughputs: Throughputs) -> Iterator[Precision]:
    """Yield the precisions of a configuration's throughput and ratios."""
    configuration_id = entry.configuration.configuration_id
    if configuration_id not in throughputs:
        return
    yield Precision("throughput", throughputs[configuration_id].logarithms.estimate)
    for kind in DENOMINATORS:
        denominator = entry.denominator(kind)
        if denominator not in (None, configuration_id) and denominator in throughputs:
            yield Precision(
                RATIOS[kind], statistics.log_ratio(throughputs[configuration_id], throughputs[denominator]), denominator
            )


def widest(entry: Entry, throughputs: Throughputs) -> Precision | None:
    """Return the precision of the widest or missing interval, or None."""
    every = list(precisions(entry, throughputs))
    missing = (precision for precision in every if precision.half_width is None)
    return next(missing, None) or max(every, key=lambda precision: precision.half_width or 0.0, default=None)


def looks_that_ended_measuring(plan: Plan, samples: Mapping[str, statistics.Sample]) -> int:
    """Return the number of looks that ended measuring, else 1.

    It did if the rule looks after as many rounds as there are, and finds all intervals within the target.
    """
    looks = plan.rounds.looks
    if len(looks) > 1 and rounds_of_all(plan, samples) in looks and not _too_wide_at_look(plan, samples):
        return len(looks)
    return 1


def _too_wide_at_look(plan: Plan, samples: Throughputs) -> bool:
    """Return whether an interval is too wide, corrected for the number of looks."""
    return bool(too_wide(plan, correct_for_looks(samples, len(plan.rounds.looks))))


def correct_for_looks(samples: Throughputs, looks: int) -> dict[str, statistics.Sample]:
    """Return the samples with the number of looks that ended measuring."""
    return {configuration_id: replace(sample, looks=looks) for configuration_id, sample in samples.items()}


def corrected_looks(samples: Mapping[str, statistics.Sample]) -> int:
    """Return for how many looks the intervals are corrected."""
    return max((sample.looks for sample in samples.values()), default=1)


def rounds_of_all(plan: Plan, samples: Mapping[str, statistics.Sample]) -> int:
    """Return the number of rounds that every number has."""
    every = chain.from_iterable(precisions(entry, samples) for entry in plan.runnable)
    return min((int(precision.estimate.rounds) for precision in every), default=0)


def too_wide(plan: Plan, samples: Mapping[str, statistics.Sample]) -> list[str]:
    """Return the configurations with an interval wider than the target."""
    wanted = plan.target_ci or 0.0
    configuration_ids = []
    for entry in plan.runnable:
        if any(precision.is_wider_than(wanted) for precision in precisions(entry, samples)):
            configuration_ids.append(entry.configuration.configuration_id)
    return configuration_ids


def needs_further_round(plan: Plan, samples: Mapping[str, statistics.Sample]) -> bool:
    """Return whether the target needs another round of ``samples``."""
    looks, rounds = plan.rounds.looks, rounds_of_all(plan, samples)
    if not looks or rounds >= plan.rounds.most:
        return False
    return rounds not in looks or _too_wide_at_look(plan, samples)


def precision_diagnostics(plan: Plan, runs: pd.DataFrame, throughputs: Throughputs) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each configuration that misses the target."""
    if plan.target_ci is None:
        return
    completed = run_status.select_completed(runs)
    run_seconds = completed["run_seconds"] + completed["waited_seconds"].fillna(0.0)
    # A further round has a run of every configuration.
    round_seconds = float(run_seconds.groupby(completed["configuration_id"]).mean().sum())
    for entry in plan.runnable:
        configuration_id = entry.configuration.configuration_id
        reached = widest(entry, throughputs)
        if reached and reached.is_wider_than(plan.target_ci):
            message = _message(reached, plan, round_seconds)
            yield Diagnostic(reached.column, message, configuration_id=configuration_id)


def _message(reached: Precision, plan: Plan, round_seconds: float) -> str:
    """Return the reached precision, its rounds, and the missing rounds."""
    wanted = plan.target_ci or 0.0
    rounds, target = counted(int(reached.estimate.rounds), "round"), f"the target is ± {100 * wanted:g} %"
    further = reached.further_rounds(plan)
    if reached.half_width is None or further is None:
        return f"no CI after {rounds}, {target}: a CI needs {statistics.MINIMUM_RUNS} rounds"
    half_width = f"± {_distinct(100 * reached.half_width, 100 * wanted)} %"
    if reached.half_width >= 1:
        half_width = f"known to a factor of {1 + reached.half_width:.2g}"
    fewest, most = further
    if fewest > MOST_FURTHER_ROUNDS:
        return f"{half_width} after {rounds}, {target}: it needs more than {MOST_FURTHER_ROUNDS} further rounds"
    takes = guessed_duration(fewest * round_seconds, most * round_seconds)
    more = f"{guessed(fewest, most)} more rounds with the present spread of runs, {takes}"
    return f"{half_width} after {rounds}, {target}: {more}"


def _distinct(percent: float, wanted: float) -> str:
    """Return a number with enough digits to differ from the target."""
    return next(short for digits in range(2, 18) if float(short := f"{percent:.{digits}g}") != wanted)
