"""How a configuration compares with its declared reference, and in which part of a step the difference lies."""

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

# Ratios of throughputs to those of a declared partner: a speedup over a baseline, or a framework against another.


#: The throughputs of the completed runs of each configuration, in samples/s, by identity.
Throughputs = Mapping[str, Floats]


@dataclass(frozen=True)
class Ratio:
    """A ratio of two medians, its interval, and the partner without which it means nothing."""

    value: float
    interval: Interval | None
    denominator_throughput: float
    denominator_interval: Interval | None


def throughput_ratio(entry: Entry, role: Denominator, throughputs: Throughputs) -> Ratio:
    """Return the throughput of a measured configuration over that of its declared partner.

    Raises:
        BaselineError: no run of the partner completed.

    """
    identity, partner = entry.configuration.identity, str(entry.denominator(role))
    own, other = throughputs[identity], throughputs.get(partner, np.empty(0))
    if not other.size:
        raise BaselineError(f"no run of its declared {role} {partner} completed")
    interval = exact_interval(1.0, own.size) if partner == identity else ratio_interval(own, other)
    return Ratio(float(np.median(own) / np.median(other)), interval, float(np.median(other)), median_interval(other))


def exact_interval(value: float, runs: int) -> Interval | None:
    """Return the interval of what a configuration is to itself: the value, whatever its runs were."""
    covered = coverage(runs)
    return Interval(value, value, covered) if covered else None


FASTER, SLOWER, UNDECIDED = "faster", "slower", "not distinguishable"
COMPUTATION, EXCHANGE, BOTH, UNCLEAR = "computation", "exchange", "both", "undecided"
#: The parts of a step that are compared, by the column of the runs that holds them.
PARTS = ("step_seconds", "computation_seconds", "exposed_seconds")


@dataclass(frozen=True)
class Difference:
    """A median minus the reference's, in seconds per step; negative is faster."""

    seconds: float
    interval: Interval | None


def verdict(interval: Interval | None) -> str | None:
    """Say what a ratio's interval allows to say; None without one."""
    if interval is None:
        return None
    if interval.low <= 1 <= interval.high:
        return UNDECIDED
    return FASTER if interval.low > 1 else SLOWER


def differences(own: pd.DataFrame, reference: pd.DataFrame) -> dict[str, Difference]:
    """Return how much longer the runs of ``own`` take than those of ``reference``, by part of a step.

    Each part is a difference of medians of its own, so the parts need not add up to the step. Empty where the
    global batches differ, because then a step is not the same work; a part that either lacks is left out.
    """
    if own["global_batch"].iloc[0] != reference["global_batch"].iloc[0]:
        return {}
    pairs = {part: (own[part].dropna(), reference[part].dropna()) for part in PARTS}
    alone = own["identity"].iloc[0] == reference["identity"].iloc[0]
    return {part: _difference(*pair, alone) for part, pair in pairs.items() if all(map(len, pair))}


def explaining_part(decided: str | None, found: dict[str, Difference], uneven: bool = False) -> str | None:
    """Return which part of a step makes a configuration faster or slower, as far as the intervals can tell.

    A part does when its interval excludes 0 in the direction of the verdict; it is the larger one when its
    interval also lies beyond that of the other part. None where no verdict or no interval is there to explain.
    ``uneven``: a rank of either side computed much slower than the others. The slowest rank's computation is then
    no property of what is compared, and can't explain it.
    """
    parts = [found[part].interval for part in PARTS[1:] if part in found]
    if decided not in (FASTER, SLOWER) or len(parts) < 2 or None in parts:
        return None
    if uneven:
        return UNCLEAR
    computation, exchange = (_contribution(part, decided) for part in parts if part)
    if computation.low > max(0, exchange.high):
        return COMPUTATION
    if exchange.low > max(0, computation.high):
        return EXCHANGE
    return BOTH if min(computation.low, exchange.low) > 0 else UNCLEAR


def network_diagnostics(configurations: pd.DataFrame) -> Iterator[Diagnostic]:
    """Yield an error for every configuration that trains another number of parameters than its reference."""
    parameters = configurations.set_index("identity")["parameters"].dropna().to_dict()
    compared = configurations[["identity", "reference_identity"]].dropna()
    for identity, reference in compared.itertuples(index=False):
        own, other = parameters.get(identity), parameters.get(reference)
        if own is not None and other is not None and own != other:
            message = f"rank 0 trains {own:,} parameters and that of its reference {other:,}: not the same network"
            yield Diagnostic("relative_throughput", message, Severity.ERROR, identity)


def _difference(own: pd.Series, reference: pd.Series, alone: bool) -> Difference:
    interval = exact_interval(0.0, len(own)) if alone else difference_interval(own.to_numpy(), reference.to_numpy())
    return Difference(float(own.median() - reference.median()), interval)


def _contribution(difference: Interval, decided: str) -> Interval:
    """Return a difference so that what goes in the direction of the verdict is positive."""
    if decided == SLOWER:
        return difference
    return Interval(-difference.high, -difference.low, difference.coverage)
