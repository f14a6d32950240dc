"""How a configuration compares with its baseline or reference, and which part of a step explains the difference."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dlperf_study.analysis.statistics import Interval, coverage, difference_interval, median_interval, ratio_interval
from dlperf_study.arrays import Floats
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import BaselineError
from dlperf_study.plan.plan import Entry
from dlperf_study.study.grid import Denominator

#: The throughputs of the completed runs of each configuration, in samples/s, by identity.
Throughputs = Mapping[str, Floats]
FASTER, SLOWER, NOT_DISTINGUISHABLE = "faster", "slower", "not distinguishable"
COMPUTATION, EXCHANGE, BOTH, UNCLEAR = "computation", "exchange", "both", "undecided"
#: The parts of a step that are compared, by their column of the runs: the step, and its two parts.
PARTS = ("step_seconds", "computation_seconds", "exposed_seconds")


@dataclass(frozen=True)
class Ratio:
    """A ratio of two medians with its interval, and the throughput it is relative to, in samples/s."""

    value: float
    interval: Interval | None
    denominator_throughput: float
    denominator_interval: Interval | None


@dataclass(frozen=True)
class Difference:
    """A median minus the reference's, in seconds per step; negative is faster."""

    seconds: float
    interval: Interval | None


def throughput_ratio(entry: Entry, role: Denominator, throughputs: Throughputs) -> Ratio:
    """Return the throughput of a measured configuration / that of its declared baseline or reference.

    Raises:
        BaselineError: no run of the baseline or reference completed.

    """
    identity, denominator_identity = entry.configuration.identity, str(entry.denominator(role))
    rates, denominator_rates = throughputs[identity], throughputs.get(denominator_identity, np.empty(0))
    if not denominator_rates.size:
        raise BaselineError(f"no run of its declared {role} {denominator_identity} completed")
    if identity == denominator_identity:
        interval = exact_interval(1.0, rates.size)
    else:
        interval = ratio_interval(rates, denominator_rates)
    median, denominator_median = float(np.median(rates)), float(np.median(denominator_rates))
    return Ratio(median / denominator_median, interval, denominator_median, median_interval(denominator_rates))


def exact_interval(value: float, runs: int) -> Interval | None:
    """Return the interval of a configuration compared with itself: the value, whatever its runs were."""
    covered = coverage(runs)
    return Interval(value, value, covered) if covered else None


def verdict(interval: Interval | None) -> str | None:
    """Return the verdict that the interval of a ratio supports; None without an interval."""
    if interval is None:
        return None
    if interval.low <= 1 <= interval.high:
        return NOT_DISTINGUISHABLE
    return FASTER if interval.low > 1 else SLOWER


def differences(runs: pd.DataFrame, reference_runs: pd.DataFrame) -> dict[str, Difference]:
    """Return how much longer the runs of a configuration take than those of its reference, by part of a step.

    Each part is a difference of its own medians, so the parts need not add up to the step. Empty if the global
    batches differ, because then a step is not the same work; without a part that either side has not measured.
    """
    if runs["global_batch"].iloc[0] != reference_runs["global_batch"].iloc[0]:
        return {}
    is_reference = runs["identity"].iloc[0] == reference_runs["identity"].iloc[0]
    parts: dict[str, Difference] = {}
    for part in PARTS:
        seconds, reference_seconds = runs[part].dropna(), reference_runs[part].dropna()
        if seconds.empty or reference_seconds.empty:
            continue
        if is_reference:
            interval = exact_interval(0.0, len(seconds))
        else:
            interval = difference_interval(seconds.to_numpy(), reference_seconds.to_numpy())
        parts[part] = Difference(float(seconds.median() - reference_seconds.median()), interval)
    return parts


def explaining_part(decided: str | None, parts: dict[str, Difference], uneven: bool = False) -> str | None:
    """Return which part of a step makes a configuration faster or slower, as far as the intervals can tell.

    A part explains the verdict if its interval excludes 0 in the direction of the verdict; it is the larger part if
    its interval is also beyond that of the other part. None without a verdict or without intervals.
    ``uneven``: a rank of either side computed much slower than the others. The slowest rank's computation is then
    no property of what is compared, and can't explain it.
    """
    intervals = [parts[part].interval for part in PARTS[1:] if part in parts]
    if decided not in (FASTER, SLOWER) or len(intervals) < 2 or None in intervals:
        return None
    if uneven:
        return UNCLEAR
    # Positive in the direction of the verdict.
    computation, exchange = (
        interval if decided == SLOWER else Interval(-interval.high, -interval.low, interval.coverage)
        for interval in intervals
        if interval
    )
    if computation.low > max(0, exchange.high):
        return COMPUTATION
    if exchange.low > max(0, computation.high):
        return EXCHANGE
    return BOTH if min(computation.low, exchange.low) > 0 else UNCLEAR


def network_diagnostics(configurations: pd.DataFrame) -> Iterator[Diagnostic]:
    """Yield an error for every configuration that has a different number of parameters than its reference."""
    parameters = configurations.set_index("identity")["parameters"].dropna().to_dict()
    compared = configurations[["identity", "reference_identity"]].dropna()
    for identity, reference_identity in compared.itertuples(index=False):
        if identity not in parameters or reference_identity not in parameters:
            continue
        count, reference_count = parameters[identity], parameters[reference_identity]
        if count != reference_count:
            message = f"rank 0 trains {count:,} parameters and that of its reference {reference_count:,}"
            message += ": not the same network"
            yield Diagnostic("relative_throughput", message, Severity.ERROR, identity)
