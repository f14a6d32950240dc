"""Lines that hold a needle, a literal text without which no line is of a kind: few of a log, and quickly found."""

import re
from collections.abc import Iterable

import numpy as np

from dlperf_study.logs.arrays import Whole
from dlperf_study.logs.blocks import Block

#: Above this share of lines with a needle it is quicker to sort all lines by layout than to find them first.
MANY = 0.25
#: How much of a block is looked at to tell.
SAMPLE = 1 << 15


def candidate_lines(needles: Iterable[str], block: Block) -> Whole:
    """Return lines (from 0) among which are all that hold a needle."""
    start = block.data[:SAMPLE]
    if sum(start.count(needle.encode()) for needle in needles) > MANY * start.count(b"\n"):
        return np.arange(block.ends.size)
    return lines_with(needles, block)


def lines_with(needles: Iterable[str], block: Block) -> Whole:
    """Return the lines (from 0) that hold a needle."""
    starts = [match.start() for needle in needles for match in re.finditer(re.escape(needle.encode()), block.data)]
    return np.unique(block.line_indices(np.array(starts, dtype=np.int64)))
