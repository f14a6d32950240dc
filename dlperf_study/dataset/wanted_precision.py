"""The precision that a study asks for: which configurations have not reached it, and what the rest would cost."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import Diagnostic, EvidenceError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import guessed, guessed_duration
from dlperf_study.dataset.configuration_table import throughputs_of
from dlperf_study.dataset.run_table import run_row
from dlperf_study.dataset.study_diagnostics import leave_out_of_rounds
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.evidence.run import DuplicateRuns, read_run
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.comparison import RATIOS, Throughputs, throughput_ratio
from dlperf_study.metrics.outcome import completed_of
from dlperf_study.metrics.statistics import CONFIDENCE, MINIMUM_RUNS, Estimate, is_precise, t_quantile
from dlperf_study.study.grid import DENOMINATORS
from dlperf_study.study.plan import Entry, Plan

#: More runs than these are not counted, and of more further ones nobody is told: nobody would make them.
MOST_RUNS, MOST_FURTHER_RUNS = 10_000, 50


@dataclass(frozen=True)
class Precision:
    """The half-width of one interval of a configuration, as a share of its value; None without an interval.

    ``column`` is the value that has the interval, ``denominator`` the identity of the baseline or reference of a ratio.
    ``logarithms``: of the rate of each run or, of a ratio, of each common round, in order.
    """

    column: str
    estimate: Estimate
    logarithms: Floats
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
        return self.logarithms.size

    def is_wider_than(self, wanted: float) -> bool:
        """Return whether the interval is missing or wider than ``± wanted``."""
        return self.half_width is None or self.half_width > wanted

    def has_ended(self, wanted: float) -> bool:
        """Return whether no further run is needed: the first half is as precise as wanted, and the second was measured.

        Its interval may be wider nevertheless: more runs until it is narrow would be chosen by chance again.
        """
        return is_precise(self.logarithms, math.log1p(wanted))

    def further_runs(self, wanted: float) -> tuple[int, int] | None:
        """Return between how many further runs the wanted half-width takes in half of all cases; None without one.

        Few runs tell little of how much runs vary: the standard deviation of all is between the two quartiles of its
        distribution, s · √(f / χ²) with f degrees of freedom.
        """
        if self.estimate.error is None:
            return None
        deviation = self.estimate.error * math.sqrt(self.runs)
        factors = _deviation_quartiles(self.estimate.freedom)
        fewest, most = (self._runs_needed(wanted, factor * deviation) - self.runs for factor in factors)
        return fewest, most

    def _runs_needed(self, wanted: float, deviation: float) -> int:
        """Return twice the smallest n with t(n − 1) · deviation / √n <= log(1 + wanted), above those so far.

        As many runs as are precise enough confirm them. The most if it is above that.
        """
        for count in range(max(MINIMUM_RUNS, self.runs // 2 + 1), MOST_RUNS // 2):
            if _quantile(count - 1) * deviation / math.sqrt(count) <= math.log1p(wanted):
                return 2 * count
        return MOST_RUNS


def precisions(entry: Entry, throughputs: Throughputs) -> Iterator[Precision]:
    """Yield the precision of the throughput of a configuration and of its ratios; nothing if it is not measured."""
    identity = entry.configuration.identity
    if identity not in throughputs:
        return
    logarithms = throughputs[identity].logarithms
    yield Precision("throughput", logarithms.estimate, logarithms.in_order)
    for kind in DENOMINATORS:
        denominator = entry.denominator(kind)
        if denominator not in (None, identity) and denominator in throughputs:
            differences = logarithms.within_rounds(throughputs[denominator].logarithms)
            yield Precision(RATIOS[kind], throughput_ratio(entry, kind, throughputs), differences, denominator)


def widest(entry: Entry, throughputs: Throughputs) -> Precision | None:
    """Return the precision of the widest interval of a configuration, a missing one first; None if not measured."""
    return max(precisions(entry, throughputs), key=_half_width_or_infinity, default=None)


def too_wide(plan: Plan, throughputs: Throughputs) -> set[str]:
    """Return the identities that need further runs for the precision of a plan.

    These are the configurations with an interval that is wider, or that as many further runs have to confirm, and the
    baseline or reference of such a ratio.
    """
    identities: set[str] = set()
    for entry in plan.runnable if plan.precision is not None else ():
        for precision in precisions(entry, throughputs):
            if not precision.has_ended(plan.precision or 0.0):
                identities.add(entry.configuration.identity)
                identities.update(filter(None, (precision.denominator,)))
    return identities


def _half_width_or_infinity(precision: Precision) -> float:
    return math.inf if precision.half_width is None else precision.half_width


def _deviation_quartiles(freedom: float) -> tuple[float, float]:
    """Return the quartiles of the true standard deviation / that of a sample from a normal distribution."""
    from scipy.special import chdtri

    return math.sqrt(freedom / chdtri(freedom, 0.25)), math.sqrt(freedom / chdtri(freedom, 0.75))


def _quantile(freedom: float) -> float:
    return t_quantile((1 + CONFIDENCE) / 2, freedom)


def configurations_too_wide(plan: Plan) -> set[str]:
    """Return the identities of the configurations that need further runs, by the evidence that there is now."""
    rows = []
    duplicates = DuplicateRuns()
    for entry in plan.runnable:
        for paths in StudyPaths.of(plan.study).configuration(entry.configuration.identity).runs():
            try:
                rows.append(run_row(duplicates.checked(read_run(paths))))
            except EvidenceError:
                continue  # ``collect`` says so in the report
    runs, _ = leave_out_of_rounds(frame_of_rows(TableName.RUNS, rows))
    return too_wide(plan, throughputs_of(runs, plan))


def precision_diagnostics(plan: Plan, runs: pd.DataFrame, throughputs: Throughputs) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each measured configuration whose widest interval is wider than the plan asks."""
    if plan.precision is None:
        return
    completed = completed_of(runs)
    positions = completed.groupby("identity").indices
    for entry in plan.runnable:
        identity = entry.configuration.identity
        reached = widest(entry, throughputs)
        if reached and reached.is_wider_than(plan.precision):
            of_configuration = completed.iloc[positions[identity]]
            seconds = (of_configuration["run_seconds"] + of_configuration["waited_seconds"].fillna(0.0)).mean()
            yield Diagnostic(
                reached.column, _message(reached, plan.precision, len(of_configuration), seconds), identity=identity
            )


def _message(reached: Precision, wanted: float, runs: int, run_seconds: float) -> str:
    """Return what was reached with so many runs, and what the rest would cost."""
    request = f"the study asks for ± {100 * wanted:g} %"
    if reached.half_width is None:
        takes = "three rounds with a run of both" if reached.denominator else "three runs"
        return f"no interval after {runs} runs, {request}: it takes {takes}"
    half_width = f"± {_distinct(100 * reached.half_width, 100 * wanted)} %"
    if reached.half_width >= 1:
        half_width = f"known to a factor of {1 + reached.half_width:.2g}"
    so_far = f"{half_width} after {runs} runs, {request}"
    if reached.has_ended(wanted):
        return (
            f"{so_far}: the later half of the runs differs more than the first, and no run is added after it; "
            f"for more runs ask for a narrower interval, such as precision: {50 * wanted:g} %"
        )
    further = reached.further_runs(wanted)
    if further is None or further[0] > MOST_FURTHER_RUNS:
        return f"{so_far}: its runs differ too much for more of them to help; a quieter machine may"
    fewest, most = further
    takes = guessed_duration(fewest * run_seconds, most * run_seconds)
    return f"{so_far}: {guessed(fewest, most)} more would do if they vary like these, {takes}"


def _distinct(percent: float, wanted: float) -> str:
    """Return a number with two digits, or with as many as set it apart from the one that was asked for."""
    return next(short for digits in range(2, 18) if float(short := f"{percent:.{digits}g}") != wanted)
