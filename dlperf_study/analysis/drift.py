"""Whether the machine drifted: what the runs of a round have in common, against the other rounds.

Every configuration is measured once a round, so the mean of a round over configurations, each relative to its own
mean, holds no difference between configurations. Its interval is that of a mean over configurations, whose spread in
one round is their own noise.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dlperf_study.analysis.statistics import Bounded, Estimate, Interval, bounded, distinguishable

#: A round in which fewer than this share of the configurations took part, as one of those added for precision, is left
#: out; then every configuration that missed one of the others is.
SHARE = 0.5


@dataclass(frozen=True)
class RoundEffect:
    """The logarithm of the rates of a round, relative to the mean of all rounds.

    ``begun``: when its first run began. ``is_different``: after Holm over all rounds.
    """

    round: int
    configurations: int
    begun: pd.Timestamp
    log_rate: Estimate
    is_different: bool

    @property
    def percent_change(self) -> Bounded:
        """By how many per cent the rates of the round differ from the mean of all rounds."""
        interval = self.log_rate.factor_interval()
        change = Interval(100 * (interval.low - 1), 100 * (interval.high - 1)) if interval else None
        return bounded(100 * (self.log_rate.factor - 1), change)


def relative_rates(completed: pd.DataFrame) -> pd.DataFrame:
    """Return ``begun``, ``round`` and ``relative`` of runs: the rate / geometric mean of its configuration, minus 1.

    The mean is over the rounds that ``round_effects`` compares, or over all runs of a configuration that missed one.
    Runs whose configuration has no other run are left out; the mean would be themselves. In the order of ``begun``.
    """
    log_rates = np.log(completed["throughput"].astype("float64"))
    by_configuration = log_rates.groupby(completed["identity"])
    of_all_runs = by_configuration.transform("mean")
    means = _log_rates_of_rounds(completed).mean(axis=1)
    # Of no runs at all, what is mapped are strings.
    of_compared_rounds = completed["identity"].map(means).astype("float64")
    relative = np.expm1(log_rates - of_compared_rounds.fillna(of_all_runs))
    begun = pd.to_datetime(completed["started"], utc=True, format="ISO8601")
    table = pd.DataFrame({"begun": begun, "round": completed["round"], "relative": relative})
    return table[by_configuration.transform("size") > 1].dropna(subset=["begun", "relative"]).sort_values("begun")


def round_effects(completed: pd.DataFrame) -> list[RoundEffect]:
    """Return the effect of each round on those configurations that were measured in all of them.

    None with fewer than two rounds.
    """
    in_rounds = _of_rounds(completed)
    log_rates = _log_rates_of_rounds(completed)
    if log_rates.empty:
        return []
    deviations = log_rates.sub(log_rates.mean(axis=1), axis=0)
    estimates = [Estimate.of(deviations[name].to_numpy()) for name in deviations]
    different = distinguishable(list(map(Estimate.p_value, estimates)))
    begun = pd.to_datetime(in_rounds["started"], utc=True, format="ISO8601").groupby(in_rounds["round"]).min()
    effects = []
    for name, estimate, is_different in zip(deviations, estimates, different, strict=True):
        effects.append(RoundEffect(int(name), len(deviations), begun[name], estimate, is_different))
    return effects


def _of_rounds(completed: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that have a round, a rate and a time at which they began."""
    return completed.dropna(subset=["round", "throughput", "started"])


def _log_rates_of_rounds(completed: pd.DataFrame) -> pd.DataFrame:
    """Return the logarithms of rates: a row for each configuration that has all rounds, a column for each round.

    Empty with fewer than two rounds.
    """
    rates = _of_rounds(completed).pivot_table(index="identity", columns="round", values="throughput")
    log_rates = np.log(rates.astype("float64"))
    log_rates = log_rates.loc[:, log_rates.notna().mean() >= SHARE].dropna()
    return log_rates if log_rates.shape[1] > 1 else log_rates.iloc[:0]
