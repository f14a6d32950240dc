"""Drift of a machine, between rounds and between measurement sessions.

Every configuration is measured once a round, so the mean of a round over configurations, each relative to its own mean,
holds no difference between configurations. Two sessions are two blocks of runs: the ratio holds every change between
them, and only several earlier sessions tell how much a configuration differs from session to session.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dlperf_study.metrics.statistics import Bounded, Estimate, Interval, are_equal, bounded

#: A round in which fewer than this share of the configurations took part, as one of those added, is left
#: out; then every configuration that missed one of the others is.
SHARE = 0.5


@dataclass(frozen=True)
class RoundEffect:
    """Logarithm of the throughputs of a round, relative to all rounds."""

    round: int
    configurations: int
    begun: pd.Timestamp
    log_throughput: Estimate

    @property
    def percent_change(self) -> Bounded:
        """Change of the throughputs in per cent of the mean."""
        interval = self.log_throughput.factor_interval()
        change = None
        if interval:
            change = Interval(100 * (interval.low - 1), 100 * (interval.high - 1))
        return bounded(100 * (self.log_throughput.factor - 1), change)


def relative_throughputs(completed: pd.DataFrame, throughput: str) -> pd.DataFrame:
    """Return ``begun``, ``round`` and ``relative`` throughput − 1 of runs.

    Relative to the geometric mean of the configuration, over the rounds that ``round_effects`` compares, or over all
    runs of a configuration that missed one. Single runs are left out. In the order of ``begun``. ``throughput``: the
    column of it.
    """
    log_throughputs = np.log(completed[throughput].astype("float64"))
    by_configuration = log_throughputs.groupby(completed["configuration_id"])
    of_all_runs = by_configuration.transform("mean")
    means = _log_throughputs_of_rounds(completed, throughput).mean(axis=1)
    # Of no runs at all, what is mapped are strings.
    of_compared_rounds = completed["configuration_id"].map(means).astype("float64")
    relative = np.expm1(log_throughputs - of_compared_rounds.fillna(of_all_runs))
    begun = pd.to_datetime(completed["started"], utc=True, format="ISO8601")
    table = pd.DataFrame({"begun": begun, "round": completed["round"], "relative": relative})
    return table[by_configuration.transform("size") > 1].dropna(subset=["begun", "relative"]).sort_values("begun")


def round_effects(completed: pd.DataFrame, throughput: str) -> list[RoundEffect]:
    """Return the effect of each round on complete configurations' ``throughput``."""
    in_rounds = _select_round_runs(completed, throughput)
    log_throughputs = _log_throughputs_of_rounds(completed, throughput)
    if log_throughputs.empty:
        return []
    deviations = log_throughputs.sub(log_throughputs.mean(axis=1), axis=0)
    begun = pd.to_datetime(in_rounds["started"], utc=True, format="ISO8601").groupby(in_rounds["round"]).min()
    effects = []
    for name in deviations:
        estimate = Estimate.from_values(deviations[name].to_numpy())
        effects.append(RoundEffect(int(name), len(deviations), begun[name], estimate))
    return effects


def _select_round_runs(completed: pd.DataFrame, throughput: str) -> pd.DataFrame:
    """Return the runs with a round, a throughput and a start."""
    return completed.dropna(subset=["round", throughput, "started"])


def _log_throughputs_of_rounds(completed: pd.DataFrame, throughput: str) -> pd.DataFrame:
    """Return logarithms of throughputs: complete configurations by rounds."""
    throughputs = _select_round_runs(completed, throughput).pivot_table(
        index="configuration_id", columns="round", values=throughput
    )
    log_throughputs = np.log(throughputs.astype("float64"))
    log_throughputs = log_throughputs.loc[:, log_throughputs.notna().mean() >= SHARE].dropna()
    if log_throughputs.shape[1] > 1:
        return log_throughputs
    return log_throughputs.iloc[:0]


#: With fewer earlier sessions the variation between sessions is not known well enough.
MINIMUM_DATES = 5


@dataclass(frozen=True)
class DateChange:
    """Change of a throughput or ratio at the latest session, as logarithms.

    ``log_ratio``: the latest / the session before. Its Welch interval is of the runs of both sessions.
    ``change_against_mean``: the latest / the mean of all earlier sessions, with the interval of one further session;
    None with fewer than MINIMUM_DATES. Only ``change_against_mean`` supports a significance test.
    """

    log_ratio: Estimate
    change_against_mean: Estimate | None


def date_change(before: Estimate, latest: Estimate, earlier: Sequence[Estimate]) -> DateChange:
    """Return the change of a logarithm against earlier sessions.

    ``before``: of the session to compare with. ``earlier``: of all earlier sessions. A session is one value. The error
    of the change against their mean is max(s, e) · √(1 + 1/k), with k − 1 degrees of freedom: s is the standard
    deviation of the k earlier sessions, e the standard error of the latest one, which counts if its runs differ more
    than sessions do.
    """
    log_ratio = latest.minus(before)
    if len(earlier) < MINIMUM_DATES:
        return DateChange(log_ratio, None)
    dates = np.array([date.mean for date in earlier])
    difference = latest.mean - float(dates.mean())
    if are_equal(dates):
        return DateChange(log_ratio, Estimate(difference))
    spread = max(float(dates.std(ddof=1)), latest.error or 0.0)
    return DateChange(log_ratio, Estimate(difference, spread * math.sqrt(1 + 1 / dates.size), dates.size - 1))


def date_changes(
    before: Mapping[str, Estimate], latest: Mapping[str, Estimate], earlier: Sequence[Mapping[str, Estimate]]
) -> dict[str, DateChange]:
    """Return the change of each throughput or ratio by identity."""
    changes = {}
    for configuration_id in before:
        if configuration_id in latest:
            of_dates = [date[configuration_id] for date in earlier if configuration_id in date]
            changes[configuration_id] = date_change(before[configuration_id], latest[configuration_id], of_dates)
    return changes
