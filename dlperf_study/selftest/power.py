"""What a self-test of so many pairs can see: how often a wrong instrument passes, by exact sums and by simulation."""

from functools import cache

import numpy as np

from dlperf_study.core.arrays import Floats

#: How often an instrument that is wrong must fail for the self-test to see it.
SEEN = 0.95
#: How often a right instrument seems to have intervals that are too narrow.
NARROW_BY_CHANCE = 0.025
_SIMULATED = 4_000


def seen_share(cases: int, allowed: int) -> float:
    """Return the smallest share of wrong verdicts that makes ``cases`` of them fail in 95 % of self-tests.

    It is Clopper and Pearson's upper bound of a share of which ``allowed`` of ``cases`` were seen.
    """
    from scipy.special import betaincinv

    return float(betaincinv(allowed + 1, cases - allowed, SEEN)) if allowed < cases else 1.0


def passing_probability(cases: int, allowed: int, wrong: float) -> float:
    """Return how often an instrument passes of whose verdicts the share ``wrong`` is wrong: a binomial sum."""
    from scipy.special import bdtr

    return float(bdtr(allowed, cases, wrong))


def distance_score(distances: Floats, freedom: int) -> Floats:
    """Return how large distances [..., comparisons] are, in standard errors, as one number each for the last axis.

    It is the mean of log(1 + t² / freedom), which tells scales of Student's t distribution apart and which no single
    large distance decides.
    """
    return np.asarray(np.log1p(distances**2 / freedom).mean(axis=-1))


@cache
def largest_score(pairs: int, rounds: int) -> float:
    """Return the score that correct intervals exceed in 2.5 % of self-tests."""
    return float(np.quantile(_simulated_scores(pairs, rounds), 1 - NARROW_BY_CHANCE))


def seen_intervals(pairs: int, rounds: int, width: float) -> float:
    """Return how often intervals are found to be too narrow that have this share of their right width."""
    return float(np.mean(_simulated_scores(pairs, rounds, width) > largest_score(pairs, rounds)))


def _simulated_scores(pairs: int, rounds: int, width: float = 1.0) -> Floats:
    """Return scores [self-tests] of pairs whose two ratios share the runs of a reference, all with one noise."""
    runs = np.random.default_rng(0).standard_normal((_SIMULATED, pairs, 3, rounds))
    differences = runs[:, :, 1:] - runs[:, :, :1]
    errors = differences.std(axis=-1, ddof=1) / np.sqrt(rounds)
    distances = differences.mean(axis=-1) / errors / width
    return distance_score(distances.reshape(_SIMULATED, -1), rounds - 1)
