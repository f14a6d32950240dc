"""What launchers and loggers put before a line: the rank that printed it, and the time."""

import re
from collections.abc import Sequence

import numpy as np

from dlperf_study.logs.arrays import Real, Whole
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.digits import read_numbers, weighted
from dlperf_study.logs.layouts import Layout

#: Where a prefix must have ended; no launcher and logger together need more.
LONGEST_PREFIX = 96
#: ``[1,3]<stdout>:`` of mpirun, ``[3]<stdout>:`` of horovodrun, ``[default3]:`` and ``[rank3]:`` of torchrun, `` 3: ``
#: of srun.
RANK = re.compile(rb"(?:(\[)(?:\d+,|default|rank|(?=\d+\]<))|\s*+)(\d{1,9})(?(1)\](?:<std(?:out|err)>)?:|: )")
TIME = re.compile(rb"(\d{4}[-/]\d\d[-/]\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?")
#: What each character of 2021-11-07 and of 21:21:01 is worth, in a number like 20211107 and in seconds.
_DATE = np.array([1e7, 1e6, 1e5, 1e4, 0, 1e3, 1e2, 0, 1e1, 1e0])
_CLOCK = np.array([36000.0, 3600.0, 0, 600.0, 60.0, 0, 10.0, 1.0])


def ranks_of(block: Block, some: Sequence[Layout]) -> Whole:
    """Return the rank that the prefix of each line names, −1 where it names none."""
    matches = [RANK.match(layout.text) for layout in some]
    if not any(matches):
        return np.full(sum(layout.lines.size for layout in some), -1, dtype=np.int64)
    ranks = _group(block, some, matches, 2)
    return np.where(np.isnan(ranks), -1, ranks).astype(np.int64)


def times_of(block: Block, some: Sequence[Layout]) -> Real:
    """Return the time before each line in seconds since 1970, as if it were UTC; NaN where no date and time stand."""
    matches = [TIME.search(layout.text, 0, LONGEST_PREFIX) for layout in some]
    counts = [layout.lines.size for layout in some]
    dated = np.repeat(np.array([match is not None for match in matches], dtype=bool), counts)
    seconds = np.full(dated.size, np.nan)
    if dated.any():
        days = _days(weighted(block, _starts(block, some, matches, 1)[dated], _DATE))
        clock = weighted(block, _starts(block, some, matches, 2)[dated], _CLOCK)
        digits = np.array([len(match[3] or b"") if match else 0 for match in matches])
        fraction = np.nan_to_num(_group(block, some, matches, 3)) / 10.0 ** np.repeat(digits, counts)
        seconds[dated] = days * 86400.0 + clock + fraction[dated]
    return seconds


def _days(dates: Real) -> Real:
    """Return numbers like 20211107 as days since 1970; NaN for a date that does not exist."""
    year, month, day = dates // 10000, dates // 100 % 100, dates % 100
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    exists = (month >= 1) & (month <= 12) & (days.astype("datetime64[M]") == months)
    return np.where(exists, days.astype(np.float64), np.nan)


def _group(block: Block, some: Sequence[Layout], matches: Sequence[re.Match[bytes] | None], group: int) -> Real:
    texts = [match[group] if match else None for match in matches]
    counts = np.array([layout.lines.size for layout in some])
    return read_numbers(block, _starts(block, some, matches, group), texts, counts).values


def _starts(block: Block, some: Sequence[Layout], matches: Sequence[re.Match[bytes] | None], group: int) -> Whole:
    """Return where a group begins in each line; in a line without it, where the line does."""
    offsets = [max(0, match.start(group)) if match else 0 for match in matches]
    return np.concatenate([block.starts[layout.lines] + offset for layout, offset in zip(some, offsets, strict=True)])
