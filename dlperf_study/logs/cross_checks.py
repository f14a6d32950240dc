"""Numbers of one log, or of its ranks, beside each other: do they fit, where they must?"""

from collections.abc import Iterator, Sequence

import numpy as np

from dlperf_study.arrays import Floats
from dlperf_study.logs.format import Format, Metric, Scope
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.records import Records
from dlperf_study.logs.step_index import Places

#: By how much copies of the job's rate may lie apart: each rank has its own clock.
APART = 0.1
#: By how much a rate and the time of a step may differ on one line, besides the rounding of both.
ALLOWED_ERROR = 0.05
#: Fewer steps may be the same by chance.
FEWEST_STEPS = 3
#: How many decimals are tried for the last digit that a program prints.
MOST_DECIMALS = 9
#: What most numbers of decimals are already too few for.
SOME = 1000


def copies_apart(values: Floats, places: Places) -> Iterator[str]:
    """Yield that what several ranks print as the job's rate is not one number."""
    shared = places.counts > 1
    if not shared.any():
        return
    smallest, largest = places.extremes(values)
    share = float(np.median(largest[shared] / smallest[shared]))
    if not share <= 1 + APART:
        yield f"copies of the job's rate lie apart: at most steps the largest is {share:.2f} times the smallest"


def same_digits(values: Floats, places: Places) -> Iterator[str]:
    """Yield that several ranks print the same rate as their own at every step: it may be the job's."""
    fewest = places.counts.min()
    if places.counts.size < FEWEST_STEPS or fewest < 2:
        return
    smallest, largest = places.extremes(values)
    if (smallest == largest).all():
        said = f"{fewest} ranks print digit for digit the same rate at every step"
        yield f"{said}: if it is the job's, their sum is that many times too large"


def rate_against_time(readings: Sequence[Reading], format_: Format, batches: dict[Scope, int]) -> Iterator[str]:
    """Yield which log prints a rate and a time of a step that don't make the batch; ``batches``: by scope of the rate.

    A rate that leaves out a part of the step, as some of trainers that don't step together, is not looked at.
    """
    rate = format_.metrics.get("throughput")
    if rate is None or rate.unit != "samples/s" or not format_.synchronous or rate.scope not in batches:
        return
    for reading in readings:
        rows = reading.series("throughput").series("step_seconds")
        if len(rows):
            yield from _unlike(reading, rows, batches[rate.scope], rate)


def _unlike(reading: Reading, rows: Records, batch: int, rate: Metric) -> Iterator[str]:
    rates, seconds = rows.values["throughput"], rows.values["step_seconds"]
    said = float(np.median(rates * seconds))
    allowed = ALLOWED_ERROR + _rounding(rates) + _rounding(seconds)
    if not abs(said / batch - 1) <= allowed:
        made = f"its rates times its seconds per step make {said:.6g} samples a step of one {rate.scope}"
        yield f"{reading.source}: {made}, but its identity makes that {batch}"


def _rounding(values: Floats) -> float:
    """Return the largest share of a printed number that rounding may have changed, going by its last decimal."""
    tried = (d for d in range(MOST_DECIMALS) if _has_decimals(values[:SOME], d) and _has_decimals(values, d))
    decimals = next(tried, MOST_DECIMALS)
    return float(0.5 * 10.0**-decimals / max(np.median(values), 1e-12))


def _has_decimals(values: Floats, decimals: int) -> bool:
    return np.allclose(values, values.round(decimals), rtol=0, atol=1e-12)
