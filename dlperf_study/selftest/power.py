"""Power of the checks on pairs, from simulated self-tests.

Runs are normally distributed. Ratios, intervals and significance tests come from the functions of every report.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dlperf_study.core.wording import counted, per_cent
from dlperf_study.metrics import comparison, statistics
from dlperf_study.selftest import checks
from dlperf_study.selftest.result import Comparison, Status

#: An error is found if this share of the self-tests fails.
FOUND = 0.8
#: The errors that are tried: of all ratios, as a share of them, and of the width of all intervals, as a factor.
ERRORS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)
NARROW, WIDE = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1), (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 10.0)
SIMULATED, SIMULATED_FOR_ERROR = 1000, 200


def power_sentences(slowdowns: Sequence[float], rounds: int, half_width: float) -> str:
    """Return false failures and detected errors at this median margin."""

    def is_found(error: float = 0.0, width: float = 1.0) -> bool:
        return failing_share(slowdowns, rounds, half_width, error, width, SIMULATED_FOR_ERROR) >= FOUND

    error = _first_found(ERRORS, is_found)
    narrow = _first_found(NARROW, lambda width: is_found(width=width))
    wide = _first_found(WIDE, lambda width: is_found(width=width))
    errors_found = [f"ratios that are wrong by {per_cent(error, 1)}"] if error else []
    errors_found += [f"CIs of {width:g} times the right width" for width in (narrow, wide) if width]
    failing = per_cent(failing_share(slowdowns, rounds, half_width), 1)
    return (
        f"The checks of {counted(len(slowdowns), 'pair')} with {counted(rounds, 'round')} and a CI margin of "
        f"± {per_cent(half_width, 1)} fail a correct instrument in {failing} of self-tests. The smallest errors that "
        f"they find in {per_cent(FOUND)} of self-tests: {', '.join(errors_found) or 'none of those that were tried'}"
    )


def _first_found(errors: Sequence[float], is_found: Callable[[float], bool]) -> float | None:
    """Return the smallest detected error, or None."""
    index = bisect_left(errors, True, key=is_found)
    return errors[index] if index < len(errors) else None


def failing_share(
    slowdowns: Sequence[float],
    rounds: int,
    half_width: float,
    error: float = 0.0,
    width: float = 1.0,
    simulated: int = SIMULATED,
) -> float:
    """Return the share of simulated self-tests that fail.

    ``slowdowns``: of the pairs. ``half_width``: the median of the intervals, as a share of the ratio. ``error``: by how
    much all ratios are wrong. ``width``: the width of the intervals / their right width.
    """
    from scipy.special import gammaincinv

    generator = np.random.default_rng(0)
    # A margin is the t quantile times the standard error of a mean difference of two runs.
    quantile = statistics.t_quantile((1 + statistics.CONFIDENCE) / 2, rounds - 1)
    median_of_deviations = math.sqrt(2 * gammaincinv((rounds - 1) / 2, 0.5) / (rounds - 1))
    deviation = math.log1p(half_width) * math.sqrt(rounds / 2) / quantile / median_of_deviations
    failed = 0
    for _ in range(simulated):
        same, slowed = [], []
        for slowdown in slowdowns:
            throughputs = np.exp(generator.normal(0, deviation, (3, rounds)))
            throughputs[1:] *= 1 + error
            throughputs[2] /= 1 + slowdown
            pair = _pair(throughputs, slowdown, width)
            same.append(pair[0])
            slowed.append(pair[1])
        results = (
            checks.judge_same_program(same),
            checks.judge_slowdowns(slowed, slowdowns),
            checks.judge_intervals([*same, *slowed], rounds),
        )
        failed += any(result.status is Status.FAILED for result in results)
    return failed / simulated


def _pair(throughputs: np.ndarray, slowdown: float, width: float) -> tuple[Comparison, Comparison]:
    """Return comparisons of both replicas with the reference [configurations, rounds]."""
    rounds = np.arange(throughputs.shape[1], dtype=np.float64)
    reference, *replicas = (statistics.Sample(values, rounds) for values in throughputs)
    ratios = {}
    for kind, replica in zip((checks.SAME, checks.SLOWDOWNS), replicas, strict=True):
        ratio = statistics.log_ratio(replica, reference)
        ratios[kind] = replace(ratio, error=(ratio.error or 0.0) * width)
    significances = comparison.significances(ratios)
    comparisons = []
    for (kind, ratio), true in zip(ratios.items(), (1.0, 1 / (1 + slowdown)), strict=True):
        measured, low, high = ratio.bounded_factor
        comparisons.append(Comparison(kind, kind, true, measured, low, high, significances[kind].word or ""))
    return comparisons[0], comparisons[1]
