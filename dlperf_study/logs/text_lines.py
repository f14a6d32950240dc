"""Reads text lines of one kind: one pattern match per layout."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from dlperf_study.core.arrays import Floats, Integers, Mask, concatenated, constant, unite_masks
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import Line
from dlperf_study.logs.layouts import LineLayout, NumberColumn, read_numbers, weighted_digits
from dlperf_study.logs.printed import PrintedMetric
from dlperf_study.logs.records import POSITION_COLUMNS, Matches, Records, make_records

#: Larger integers are no steps: a float can't hold all of them.
LARGEST_INTEGER = 2.0**53
#: No program prints longer records; with this limit no pattern takes long.
LONGEST_RECORD = 1 << 12
#: If a larger share of lines has a needle, it is quicker to group all lines by layout than to find those first.
_MANY_CANDIDATES = 0.25
_SAMPLE_BYTES = 1 << 15
#: Where the prefix of a line must end; no launcher and logger together need more.
_LONGEST_PREFIX = 96
#: ``[1,3]<stdout>:`` of mpirun, ``[3]<stdout>:`` of horovodrun, ``[default3]:`` and ``[rank3]:`` of torchrun, `` 3: ``
#: of srun.
_RANK_PREFIX = re.compile(rb"(?:(\[)(?:\d+,|default|rank|(?=\d+\]<))|\s*+)(\d{1,9})(?(1)\](?:<std(?:out|err)>)?:|: )")
_TIME_PREFIX = re.compile(rb"(\d{4}[-/]\d\d[-/]\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?")
#: The weight of each character of 2021-11-07 in a number like 20211107, and of 21:21:01 in seconds.
_DATE_WEIGHTS = np.array([1e7, 1e6, 1e5, 1e4, 0, 1e3, 1e2, 0, 1e1, 1e0])
_CLOCK_WEIGHTS = np.array([36000.0, 3600.0, 0, 600.0, 60.0, 0, 10.0, 1.0])


@dataclass(frozen=True)
class LinePattern:
    """A compiled line; ``metrics``: by group."""

    expression: re.Pattern[bytes]
    metrics: Mapping[str, PrintedMetric]

    @property
    def groups(self) -> list[str]:
        """Its groups in order."""
        return list(self.expression.groupindex)


def candidate_lines(needles: Iterable[str], block: Block) -> Integers:
    """Return the lines that may contain a needle."""
    start = block.data[:_SAMPLE_BYTES]
    if sum(start.count(needle.encode()) for needle in needles) > _MANY_CANDIDATES * start.count(b"\n"):
        return np.arange(block.ends.size)
    return lines_with(needles, block)


def lines_with(needles: Iterable[str], block: Block) -> Integers:
    """Return the lines of a block (from 0) that contain a needle."""
    positions: list[int] = []
    for needle in needles:
        positions += [match.start() for match in re.finditer(re.escape(needle.encode()), block.data)]
    return np.unique(np.searchsorted(block.ends, np.array(positions, dtype=np.int64)))


@cache
def compile_line(line: Line) -> LinePattern:
    """Return the expression of a line: head and optional fields."""
    metrics = {metric.name: metric for metric in line.captured}
    parts = [line.head]
    for index, field in enumerate(line.fields):
        group = f"field_{index}"
        parts.append(rf"(?:.*?{field.expression(group)})?+")
        metrics[group] = field.metric
    return LinePattern(re.compile("".join(parts).encode()), metrics)


def read_lines(line: Line, block: Block, layouts: Sequence[LineLayout]) -> Matches:
    """Return the content of one kind of line, by layout."""
    needles = list(map(str.encode, line.needles))
    pattern = compile_line(line)
    with_needle, matched, matches = [], [], []
    for layout in layouts:
        count = sum(map(layout.text.count, needles))
        if count:
            with_needle.append(layout.lines)
        if count != 1 or len(layout.text) > LONGEST_RECORD:
            continue
        match = pattern.expression.search(layout.text)
        # At the end of a line that is cut, a number may have lost digits.
        if match and not (block.is_cut and max(map(match.end, pattern.groups), default=0) == len(layout.text)):
            matched.append(layout)
            matches.append(match)
    candidates = concatenated(with_needle)
    if not matched:
        return Matches.reject_all(candidates)
    lines = _MatchedLines(block, matched, matches)
    columns = lines.number_columns(pattern)
    usable = _is_usable(pattern, columns, lines.indices.size)
    records = _make_records(line, pattern, lines, columns).select(usable)
    has_nan = unite_masks((column.present & np.isnan(column.values) for column in columns.values()), lines.indices.size)
    return Matches(records, lines.indices[usable], candidates, lines.indices[usable & has_nan])


@dataclass(frozen=True)
class _MatchedLines:
    """Lines of some layouts, and the matches of one expression."""

    block: Block
    layouts: Sequence[LineLayout]
    matches: Sequence[re.Match[bytes] | None]

    @cached_property
    def indices(self) -> Integers:
        """The lines, from 0."""
        return concatenated(layout.lines for layout in self.layouts)

    @cached_property
    def counts(self) -> Integers:
        """How many lines each layout has."""
        return np.array([layout.lines.size for layout in self.layouts])

    def group_starts(self, group: str | int) -> Integers:
        """Return where a group begins in each line, else the line's start."""
        offsets = [max(0, match.start(group)) if match else 0 for match in self.matches]
        starts: Integers = self.block.starts[self.indices] + np.repeat(offsets, self.counts)
        return starts

    def numbers(self, group: str | int, has_thousands: bool = False) -> NumberColumn:
        """Return the numbers of a group, which may have thousands separators."""
        texts = [match[group] if match else None for match in self.matches]
        return read_numbers(self.block, self.group_starts(group), texts, self.counts, has_thousands)

    def number_columns(self, pattern: LinePattern) -> dict[str, NumberColumn]:
        """Return the numbers of each group that matched in any layout."""
        columns = {}
        for group in pattern.groups:
            if any(match and match[group] is not None for match in self.matches):
                metric = pattern.metrics.get(group)
                columns[group] = self.numbers(group, metric is not None and metric.has_thousands)
        return columns


def _is_usable(pattern: LinePattern, columns: Mapping[str, NumberColumn], size: int) -> Mask:
    """Return which rows are valid and complete."""
    usable = np.ones(size, dtype=bool)
    for name, column in columns.items():
        usable &= column.valid
        if name in POSITION_COLUMNS:
            usable &= ~(column.values > LARGEST_INTEGER)
    if not pattern.metrics:
        return usable
    has_metric = defaultdict[str, Mask](lambda: np.zeros(size, dtype=bool))
    for group in columns.keys() & pattern.metrics.keys():
        has_metric[pattern.metrics[group].name] |= columns[group].present
    usable &= unite_masks(has_metric.values(), size)
    for present in has_metric.values():
        if 2 * present.sum() > size:
            usable &= present
    return usable


def _make_records(
    line: Line, pattern: LinePattern, lines: _MatchedLines, columns: Mapping[str, NumberColumn]
) -> Records:
    """Return one row per line."""
    values = _metric_values(pattern, columns)
    times = values.pop("time_seconds") if "time_seconds" in values else _prefix_times(lines.block, lines.layouts)
    positions = {}
    for name in POSITION_COLUMNS:
        if name in columns:
            position = columns[name].values
            positions[name] = np.where(position <= LARGEST_INTEGER, position, -1).astype(np.int64)
    rank_prefixes = [_RANK_PREFIX.match(layout.text) for layout in lines.layouts]
    if "rank" not in positions and any(rank_prefixes):
        ranks = _MatchedLines(lines.block, lines.layouts, rank_prefixes).numbers(2).values
        positions["rank"] = np.where(np.isnan(ranks), -1, ranks).astype(np.int64)
    line_numbers = lines.block.first_line + lines.indices
    training = constant(line.training, line_numbers.size)
    return make_records(line_numbers, values, training=training, time_seconds=times, **positions)


def _metric_values(pattern: LinePattern, columns: Mapping[str, NumberColumn]) -> dict[str, Floats]:
    """Return metrics in their units, from the first field with a number."""
    values: dict[str, Floats] = {}
    for group, metric in pattern.metrics.items():
        if group not in columns:
            continue
        divisor = columns[metric.per].values if metric.per else 1.0
        column = columns[group].values * metric.factor / divisor
        if metric.inverse:
            column = np.divide(1.0, column, out=np.full(column.size, np.nan), where=column != 0)
        earlier = values.get(metric.name)
        values[metric.name] = column if earlier is None else np.where(np.isnan(earlier), column, earlier)
    return values


def _prefix_times(block: Block, layouts: Sequence[LineLayout]) -> Floats:
    """Return the time before each line in seconds since 1970, or NaN."""
    matches = [_TIME_PREFIX.search(layout.text, 0, _LONGEST_PREFIX) for layout in layouts]
    lines = _MatchedLines(block, layouts, matches)
    has_time = np.repeat(np.array([match is not None for match in matches], dtype=bool), lines.counts)
    if not has_time.any():
        return constant(np.nan, has_time.size)
    seconds = np.full(has_time.size, np.nan)
    dates = weighted_digits(block, lines.group_starts(1)[has_time], _DATE_WEIGHTS)
    clock = weighted_digits(block, lines.group_starts(2)[has_time], _CLOCK_WEIGHTS)
    decimals = np.array([len(match[3] or b"") if match else 0 for match in matches])
    fraction = np.nan_to_num(lines.numbers(3).values) / 10.0 ** np.repeat(decimals, lines.counts)
    # A date is a number like 20211107; one that does not exist gives NaN.
    year, month, day = dates // 10000, dates // 100 % 100, dates % 100
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    exists = (month >= 1) & (month <= 12) & (days.astype("datetime64[M]") == months)
    days_since_1970 = np.where(exists, days.astype(np.float64), np.nan)
    seconds[has_time] = days_since_1970 * 86400.0 + clock + fraction[has_time]
    return seconds
