"""Did every rank print to the end? A rank that died is an error, not a smaller job."""

from collections.abc import Iterator, Sequence

import numpy as np

from dlperf_study.arrays import Integers
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.rank_merge import Devices
from dlperf_study.logs.step_index import restarts
from dlperf_study.wording import counted

#: By how many printed steps ranks, or repetitions, may end apart: a job is cut off while some still print.
ALLOWED_APART = 2


def ranks_seen(readings: Sequence[Reading]) -> int:
    """Return how many ranks printed: the logs, or where ranks share one, how often its steps are there."""
    return sum(_usual(reading.rate_places.counts) for reading in readings)


def silent_ranks(unreadable: Sequence[str], printing: int, devices: Devices) -> Iterator[str]:
    """Yield why logs that hold no training can't be those of ranks that never print: one prints, or one a node."""
    if unreadable and printing not in (1, devices.nodes):
        said = "; ".join(unreadable)
        yield f"{len(unreadable)} of {printing + len(unreadable)} logs of ranks hold no training: {said}"


def lost_ranks(readings: Sequence[Reading]) -> Iterator[str]:
    """Yield which ranks ended before others: a log that ends early, or steps that fewer ranks printed."""
    lines = {str(reading.source): int(reading.records.holding(reading.rate_metric).sum()) for reading in readings}
    longest = max(lines.values())
    for source, count in lines.items():
        if count < longest - ALLOWED_APART:
            yield f"truncated: {source} holds {counted(count, 'line')} of training, another rank's {longest}"
    for reading in readings:
        # What starts over prints steps twice: no rank is missing at the others.
        yield from _lost_in_stream(reading) if not restarts(reading.records).size else ()


def _lost_in_stream(reading: Reading) -> Iterator[str]:
    counts = reading.rate_places.counts
    usual = _usual(counts)
    first = int(np.median(counts[:3])) if counts.size else 0
    fewer = int((counts < max(usual, first)).sum())
    if fewer > ALLOWED_APART:
        yield f"truncated: {fewer} of {counts.size} steps were printed by fewer than {max(usual, first)} ranks"


def _usual(counts: Integers) -> int:
    """Return how often most steps are there."""
    return int(np.bincount(counts).argmax()) if counts.size else 1
