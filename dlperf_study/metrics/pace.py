"""The pace of the machine during runs, as the pieces of arithmetic between their steps felt it, and ratios at one pace.

The adjusted mean of a configuration is y - b (x - E): y the mean logarithm of its rates, x that of its pieces, b the
slope of y on x within configurations, E the mean of all runs of the study whose pieces were in the same state. An
analysis of covariance in a randomised design: R. A. Fisher, "Statistical Methods for Research Workers" (1932), section
49.1. The round is the unit of its error: J. W. Tukey, "Bias and confidence in not quite large samples" (1958).
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlperf_study.core.arrays import Floats, Mask
from dlperf_study.core.wording import counted
from dlperf_study.evidence.lines import TRAINING
from dlperf_study.evidence.run import Run
from dlperf_study.metrics.metric import STRING, Metric, R, if_complete
from dlperf_study.metrics.statistics import Sample

#: Fewer common rounds say too little of the slope, and of its error.
MINIMUM_ROUNDS = 4
#: A pace that differs less between runs of a configuration has little to explain. What a network leaves in the caches
#: of a core slows the pieces after it by less than that.
SMALLEST_VARIATION = 0.02


def piece_seconds(run: Run) -> float | None:
    """Return the geometric mean over ranks and pieces, in seconds; None where a rank ran no piece."""
    logarithms = if_complete(
        np.log(window.piece_seconds) if window.piece_seconds.size else None for window in run.windows(TRAINING)
    )
    return float(np.exp(np.concatenate(logarithms).mean())) if logarithms else None


def pace_state(run: Run) -> str | None:
    """Return what the pieces of runs must have in common to be compared; None where a rank ran no piece.

    The numbers of busy processes on the nodes, the threads of a rank, and the interpreter.
    """
    if piece_seconds(run) is None:
        return None
    configuration = run.configuration
    ranks = Counter(log.facts["node"] for log in run.ranks)
    processes = max(ranks.values()) + configuration.servers / configuration.nodes
    interpreters = sorted({log.facts.get("interpreter", "") for log in run.ranks})
    busy = f"{processes:g} busy processes on a node, {counted(configuration.threads_per_device, 'thread')} each"
    return f"{busy}, {' and '.join(interpreters)}"


@dataclass(frozen=True, eq=False)
class PacedRates:
    """The logarithms of rates and of pieces [configurations, rounds] of one study, NaN where there is no run.

    ``states`` [configurations]: the state of their pieces. Only of configurations whose runs all have pieces, in one
    state.
    """

    rates: Floats
    pieces: Floats
    states: NDArray[np.str_]
    _kept: dict[bytes, Floats | None] = field(default_factory=dict)

    def log_ratios(self, position: int, other_position: int) -> Floats | None:
        """Return the logarithm of the ratio of two configurations, each at the mean pace of its state, by round.

        From the rounds that both have a run in. None with fewer than 4 of these, where the pace hardly differs, and
        where both are alone in their state: there is nothing to adjust.
        """
        is_common = ~np.isnan(self.rates[position] + self.rates[other_position])
        is_alone = [np.sum(self.states == self.states[index]) == 1 for index in (position, other_position)]
        means = None if all(is_alone) else self._adjusted_means(is_common)
        return None if means is None else jackknifed(means[:, position] - means[:, other_position])

    def _adjusted_means(self, is_common: Mask) -> Floats | None:
        """Return adjusted means [1 + rounds, configurations] of all common rounds, and without each of them in turn.

        None where they say nothing of the pace.
        """
        key = is_common.tobytes()
        if key not in self._kept:
            rates, pieces = self.rates[:, is_common], self.pieces[:, is_common]
            is_enough = is_common.sum() >= MINIMUM_ROUNDS and variation(pieces) >= SMALLEST_VARIATION
            self._kept[key] = self._without_each_round(rates, pieces) if is_enough else None
        return self._kept[key]

    def _without_each_round(self, rates: Floats, pieces: Floats) -> Floats:
        rows = [self._means_of(rates, pieces)]
        for index in range(rates.shape[1]):
            rows.append(self._means_of(np.delete(rates, index, 1), np.delete(pieces, index, 1)))
        return np.array(rows)

    def _means_of(self, rates: Floats, pieces: Floats) -> Floats:
        """Return the adjusted means [configurations] over some rounds; NaN without a run in them."""
        expected = np.empty(self.states.size)
        for state in set(self.states):
            expected[self.states == state] = _mean(pieces[self.states == state].ravel())
        return _mean(rates) - slope(rates, pieces) * (_mean(pieces) - expected)


def slope(rates: Floats, pieces: Floats) -> float:
    """Return the slope of the logarithms of rates on those of pieces within configurations; 0 of equal pieces."""
    deviations = _deviations(pieces)
    squares = float(np.nansum(deviations**2))
    return float(np.nansum(_deviations(rates) * deviations)) / squares if squares else 0.0


def variation(pieces: Floats) -> float:
    """Return the standard deviation of the logarithms of pieces within configurations."""
    freedom = int(np.sum(np.maximum(np.sum(~np.isnan(pieces), axis=1) - 1, 0)))
    return math.sqrt(float(np.nansum(_deviations(pieces) ** 2)) / freedom) if freedom else 0.0


def jackknifed(estimates: Floats) -> Floats:
    """Return values [rounds] with the mean of an estimate, and the standard error that its jackknife gives.

    ``estimates`` [1 + rounds]: of all rounds, and without each of them. The values are Tukey's, moved to that mean.
    """
    complete, without_one = estimates[0], estimates[1:]
    values: Floats = complete - (without_one.size - 1) * (without_one - without_one.mean())
    return values


def _mean(values: Floats) -> Floats:
    """Return means over the last axis of what is known; NaN where nothing is."""
    counts = np.sum(~np.isnan(values), axis=-1)
    means: Floats = np.nansum(values, axis=-1) / np.where(counts, counts, np.nan)
    return means


def _deviations(values: Floats) -> Floats:
    """Return by how much each run [configurations, rounds] differs from the mean of its configuration."""
    return values - _mean(values)[:, np.newaxis]


@dataclass(frozen=True)
class PacedConfiguration:
    """One configuration of the paced rates of a study."""

    study: PacedRates
    position: int

    def log_ratios(self, other: object) -> Floats | None:
        """Return the logarithm of the ratio to another one at one pace, by round; None if it is of another study."""
        if not isinstance(other, PacedConfiguration) or other.study is not self.study:
            return None
        return self.study.log_ratios(self.position, other.position)


def with_pace(
    samples: Mapping[str, Sample], rates: pd.Series, runs: pd.DataFrame, rounds: pd.Series | None
) -> dict[str, Sample]:
    """Return samples of the rates of a study; those with a pace say how they compare at one pace.

    ``rates``: positive, of the completed runs that have one, by the index of ``runs``; ``rounds``: of these runs, NaN
    for one that was in none, None if the runs are independent.
    """
    if rounds is None or runs["piece_seconds"].isna().all():
        return dict(samples)
    paced = runs.loc[rates.index, ["identity", "piece_seconds", "pace_state"]].assign(rate=rates, round=rounds)
    by_configuration = paced.groupby("identity")
    has_pace = by_configuration["pace_state"].transform("nunique") == 1
    has_pace &= by_configuration["piece_seconds"].transform("count") == by_configuration["rate"].transform("size")
    in_rounds = paced[has_pace & paced["round"].notna()]
    if in_rounds.empty:
        return dict(samples)
    table = in_rounds.pivot(index="identity", columns="round")
    rate, piece = (np.log(table[name].to_numpy(dtype=np.float64)) for name in ("rate", "piece_seconds"))
    study = PacedRates(rate, piece, in_rounds.groupby("identity")["pace_state"].first().to_numpy())
    adjusted = dict(samples)
    for position, identity in enumerate(table.index):
        adjusted[identity] = replace(samples[identity], pace=PacedConfiguration(study, position))
    return adjusted


METRICS = (
    Metric(
        "piece_seconds",
        "Pace",
        "fixed piece of arithmetic that ranks run between the steps of the training window, all at once: geometric "
        "mean over ranks and pieces; missing on GPUs, where updates or batches are on their way between steps, and in "
        "evidence of earlier versions",
        R,
        unit="s",
        value=piece_seconds,
    ),
    Metric(
        "pace_state",
        "State of the pace",
        "what runs share whose pieces may be compared: busy processes on a node, threads of each, and interpreter",
        R,
        dtype=STRING,
        value=pace_state,
    ),
)
