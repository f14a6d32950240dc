"""Reads the lines of one kind out of a block: a pattern is tried once per layout, then all numbers taken at once."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dlperf_study.arrays import Floats, Integers, Mask, any_of, concatenated
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.digits import Numbers, read_numbers, weighted
from dlperf_study.logs.format import TRAINING, Line, Metric
from dlperf_study.logs.layouts import Layout
from dlperf_study.logs.records import PLACES, Found, Records, records

# Lines that hold a needle, a literal text without which no line is of a kind: few of a log, and quickly found.


#: Above this share of lines with a needle it is quicker to sort all lines by layout than to find them first.
MANY = 0.25
#: How much of a block is looked at to tell.
SAMPLE = 1 << 15


def candidate_lines(needles: Iterable[str], block: Block) -> Integers:
    """Return lines (from 0) among which are all that hold a needle."""
    start = block.data[:SAMPLE]
    if sum(start.count(needle.encode()) for needle in needles) > MANY * start.count(b"\n"):
        return np.arange(block.ends.size)
    return lines_with(needles, block)


def lines_with(needles: Iterable[str], block: Block) -> Integers:
    """Return the lines (from 0) that hold a needle."""
    starts = [match.start() for needle in needles for match in re.finditer(re.escape(needle.encode()), block.data)]
    return np.unique(block.line_indices(np.array(starts, dtype=np.int64)))


# What launchers and loggers put before a line: the rank that printed it, and the time.


#: Where a prefix must have ended; no launcher and logger together need more.
LONGEST_PREFIX = 96
#: ``[1,3]<stdout>:`` of mpirun, ``[3]<stdout>:`` of horovodrun, ``[default3]:`` and ``[rank3]:`` of torchrun, `` 3: ``
#: of srun.
RANK = re.compile(rb"(?:(\[)(?:\d+,|default|rank|(?=\d+\]<))|\s*+)(\d{1,9})(?(1)\](?:<std(?:out|err)>)?:|: )")
TIME = re.compile(rb"(\d{4}[-/]\d\d[-/]\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?")
#: What each character of 2021-11-07 and of 21:21:01 is worth, in a number like 20211107 and in seconds.
_DATE = np.array([1e7, 1e6, 1e5, 1e4, 0, 1e3, 1e2, 0, 1e1, 1e0])
_CLOCK = np.array([36000.0, 3600.0, 0, 600.0, 60.0, 0, 10.0, 1.0])


def ranks_of(block: Block, some: Sequence[Layout]) -> Integers:
    """Return the rank that the prefix of each line names, −1 where it names none."""
    matches = [RANK.match(layout.text) for layout in some]
    if not any(matches):
        return np.full(sum(layout.lines.size for layout in some), -1, dtype=np.int64)
    ranks = _group(block, some, matches, 2)
    return np.where(np.isnan(ranks), -1, ranks).astype(np.int64)


def times_of(block: Block, some: Sequence[Layout]) -> Floats:
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


def _days(dates: Floats) -> Floats:
    """Return numbers like 20211107 as days since 1970; NaN for a date that does not exist."""
    year, month, day = dates // 10000, dates // 100 % 100, dates % 100
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    exists = (month >= 1) & (month <= 12) & (days.astype("datetime64[M]") == months)
    return np.where(exists, days.astype(np.float64), np.nan)


def _group(block: Block, some: Sequence[Layout], matches: Sequence[re.Match[bytes] | None], group: int) -> Floats:
    texts = [match[group] if match else None for match in matches]
    counts = np.array([layout.lines.size for layout in some])
    return read_numbers(block, _starts(block, some, matches, group), texts, counts).values


def _starts(block: Block, some: Sequence[Layout], matches: Sequence[re.Match[bytes] | None], group: int) -> Integers:
    """Return where a group begins in each line; in a line without it, where the line does."""
    offsets = [max(0, match.start(group)) if match else 0 for match in matches]
    return np.concatenate([block.starts[layout.lines] + offset for layout, offset in zip(some, offsets, strict=True)])


#: Larger whole numbers are no steps: they would not survive being a float.
LARGEST_WHOLE = 2.0**53
#: No program prints longer records; so bounded, no pattern takes long.
LONGEST_RECORD = 1 << 12


@dataclass(frozen=True)
class Pattern:
    """A compiled line: ``metrics`` by group; several groups may be the same metric."""

    expression: re.Pattern[bytes]
    metrics: Mapping[str, Metric]

    @property
    def groups(self) -> list[str]:
        """Its groups in order."""
        return list(self.expression.groupindex)


def read_lines(line: Line, block: Block, some: Sequence[Layout]) -> Found:
    """Return what the lines of one kind say, given the layouts of a block's candidate lines."""
    needles = [needle.encode() for needle in line.needles]
    counts = [sum(map(layout.text.count, needles)) for layout in some]
    candidates = concatenated(layout.lines for layout, count in zip(some, counts, strict=True) if count)
    pattern = compiled(line)
    single = [layout for layout, count in zip(some, counts, strict=True) if count == 1]
    matched = [(layout, match) for layout in single if (match := _match(pattern, layout, block))]
    if not matched:
        return Found.nothing(candidates)
    lines, columns = _columns(pattern, block, matched)
    good = _usable(pattern, columns, lines.size)
    rows = _rows(line, pattern, block, columns, [layout for layout, _ in matched])
    odd = any_of((column.present & np.isnan(column.values) for column in columns.values()), lines.size)
    return Found(rows.where(good), lines[good], candidates, lines[good & odd])


def _match(pattern: Pattern, layout: Layout, block: Block) -> re.Match[bytes] | None:
    """Return the match in a layout's text, unless it is too long, or its last number may lack digits."""
    if len(layout.text) > LONGEST_RECORD:
        return None
    match = pattern.expression.search(layout.text)
    is_open = match and block.is_cut and max(map(match.end, pattern.groups), default=0) == len(layout.text)
    return None if is_open else match


def _columns(
    pattern: Pattern, block: Block, matched: Sequence[tuple[Layout, re.Match[bytes]]]
) -> tuple[Integers, dict[str, Numbers]]:
    """Return the lines of all layouts, and of each group that stands in any of them the numbers."""
    lines = concatenated(layout.lines for layout, _ in matched)
    starts, counts = block.starts[lines], np.array([layout.lines.size for layout, _ in matched])
    columns = {}
    for group in pattern.groups:
        texts = [match[group] for _, match in matched]
        if any(text is not None for text in texts):
            offsets = np.repeat([max(0, match.start(group)) for _, match in matched], counts)
            columns[group] = read_numbers(block, starts + offsets, texts, counts)
    return lines, columns


@cache
def compiled(line: Line) -> Pattern:
    """Return the expression of a line's head and of its fields, each optional."""
    metrics = {metric.name: metric for metric in line.captured}
    parts = [line.head]
    for index, field in enumerate(line.fields):
        group = f"field_{index}"
        parts.append(rf"(?:.*?{field.expression(group)})?+")
        metrics[group] = field.metric
    return Pattern(re.compile("".join(parts).encode()), metrics)


def _rows(
    line: Line, pattern: Pattern, block: Block, columns: Mapping[str, Numbers], some: Sequence[Layout]
) -> Records:
    """Return a row per line."""
    indices = concatenated(layout.lines for layout in some)
    values = _values(pattern, columns)
    times = values.pop("time_seconds") if "time_seconds" in values else times_of(block, some)
    places = {name: _place(columns[name]) for name in PLACES if name in columns}
    places.setdefault("rank", ranks_of(block, some))
    training = np.full(indices.size, line.window == TRAINING)
    return records(block.first_line + indices, values, training=training, time_seconds=times, **places)


def _place(column: Numbers) -> Integers:
    """Return whole numbers; −1 where there is none, or a larger one than there are steps."""
    return np.where(column.values <= LARGEST_WHOLE, column.values, -1).astype(np.int64)


def _usable(pattern: Pattern, columns: Mapping[str, Numbers], size: int) -> Mask:
    """Say which rows are whole, all their numbers are numbers, and their places possible."""
    good = _complete(pattern, columns, size)
    for name, column in columns.items():
        good = good & column.valid
        if name in PLACES:
            good = good & ~(column.values > LARGEST_WHOLE)
    return good


def _complete(pattern: Pattern, columns: Mapping[str, Numbers], size: int) -> Mask:
    """Say which rows have a number at all, and every metric that most of their kind have: others are cut short."""
    if not pattern.metrics:
        return np.ones(size, dtype=bool)
    has = defaultdict[str, Mask](lambda: np.zeros(size, dtype=bool))
    for group in columns.keys() & pattern.metrics.keys():
        has[pattern.metrics[group].name] |= columns[group].present
    some = any_of(has.values(), size)
    usual = [column for column in has.values() if 2 * column.sum() > size]
    whole: Mask = np.logical_and.reduce([some, *usual])
    return whole


def _values(pattern: Pattern, columns: Mapping[str, Numbers]) -> dict[str, Floats]:
    """Return the metrics in their units; of several fields of one metric, the one that is there."""
    values: dict[str, Floats] = {}
    for group, metric in pattern.metrics.items():
        if group not in columns:
            continue
        per = columns[metric.per].values if metric.per else 1.0
        column = columns[group].values * metric.factor / per
        before = values.get(metric.name)
        values[metric.name] = column if before is None else np.where(np.isnan(before), column, before)
    return values
