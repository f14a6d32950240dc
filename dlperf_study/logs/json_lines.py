"""Reads the lines of a block that contain a JSON object.

Lines of one layout are read together: trials on the first line tell which of its numbers becomes which column of the
records. The line gets different digits a few times. What stays the same in its record is the same for all lines. What
is each time one of the numbers put in is, in every line, the number at that position. Everything else, and every line
whose digits could make it invalid JSON, is read on its own. A test checks that both ways give the same records.
"""

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dlperf_study.arrays import Floats, Integers, Mask, any_of, concatenated
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import TRAINING, JsonLine, JsonRecord
from dlperf_study.logs.layouts import EXACT_DIGITS, ZERO, Layout, byte_windows, read_numbers
from dlperf_study.logs.records import POSITION_COLUMNS, Matches, Records, make_records

#: With fewer lines of a layout, trials take longer than reading each line.
WORTH_TRIALS = 8
TRIALS = 3
#: What reading raises for an object of the wrong form.
UNREADABLE = (ValueError, KeyError, TypeError, RecursionError, OverflowError)
#: Larger integers do not fit a column.
_INTEGER_LIMIT = 2**63
_NUMBER = re.compile(rb"[-+]?(\d+(?:\.\d+)?)(?:[eE][-+]?(\d+))?")
_POINT = ord(".")
#: What a format may divide by: milliseconds.
_DIVISORS = (1.0, 1000.0)
#: Longer numbers may be infinite.
_LONGEST_NUMBER = 100

ReadLine = Callable[[bytes], JsonRecord | None]


def numeric_values(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the entries of a JSON object that are numbers, also those in strings; booleans are not."""
    numbers = {}
    for name, value in data.items():
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                numbers[name] = float(value)
            except (ValueError, OverflowError):
                continue
    return numbers


def string_values(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the entries of a JSON object that are single values, as strings."""
    return {name: str(value) for name, value in data.items() if isinstance(value, int | float | str)}


def parse_json_object(needles: tuple[str, ...], line: bytes) -> Mapping[str, Any]:
    """Return the JSON object after a needle; raises ValueError if there is none."""
    for needle in needles:
        _, separator, text = line.partition(needle.encode())
        if separator:
            value = json.loads(text.decode(errors="replace"))
            if isinstance(value, dict):
                return value
    raise ValueError("no JSON object")


def read_json_lines(line: JsonLine, block: Block, layouts: Sequence[Layout]) -> Matches:
    """Return what the JSON objects of a block contain, given the layouts of its candidate lines.

    A line that is understood and has no number counts as used.
    """

    def read_line(text: bytes) -> JsonRecord | None:
        return line.record(parse_json_object(line.needles, text))

    needles = list(map(str.encode, line.needles))
    parts, unread = [], []
    for layout in layouts:
        if any(needle in layout.text for needle in needles):
            matches, remaining = _read_by_trials(read_line, block, layout)
            parts.append(matches)
            unread.append(remaining)
    parts.append(_read_one_by_one(read_line, block, np.sort(concatenated(unread))))
    # Sorted, so that the metrics are in the order of the lines.
    parts.sort(key=lambda part: part.records.line[0] if len(part.records) else 0)
    return Matches.merged(parts)


def _read_one_by_one(read_line: ReadLine, block: Block, lines: Integers) -> Matches:
    """Return what these lines contain; they are candidates already."""
    json_records: list[JsonRecord] = []
    recorded: list[int] = []
    used: list[int] = []
    nan_lines: list[int] = []
    for index in lines.tolist():
        try:
            record = read_line(block.line(index))
        except UNREADABLE:
            continue
        used.append(index)
        if record is None or max(abs(record.epoch), abs(record.step), abs(record.rank)) >= _INTEGER_LIMIT:
            continue
        json_records.append(record)
        recorded.append(index)
        if any(map(math.isnan, record.values.values())):
            nan_lines.append(index)
    records = _make_records(json_records, block.first_line + np.array(recorded, dtype=np.int64))
    return Matches(records, np.array(used, dtype=np.int64), lines[:0], np.array(nan_lines, dtype=np.int64))


def _make_records(json_records: list[JsonRecord], lines: Integers) -> Records:
    values = {}
    for metric in dict.fromkeys(chain.from_iterable(record.values for record in json_records)):
        values[metric] = np.array([record.values.get(metric, np.nan) for record in json_records])
    columns = {}
    for name in POSITION_COLUMNS:
        columns[name] = np.array([getattr(record, name) for record in json_records], dtype=np.int64)
    training = np.array([record.window == TRAINING for record in json_records], dtype=bool)
    times = np.array([record.time_seconds for record in json_records], dtype=np.float64)
    return make_records(lines, values, training=training, time_seconds=times, **columns)


def _read_by_trials(read_line: ReadLine, block: Block, layout: Layout) -> tuple[Matches, Integers]:
    """Return what the lines of a layout contain, and the lines that must be read one by one."""
    nothing = Matches.none_of(layout.lines)
    characters = byte_windows(np.frombuffer(block.data, np.uint8), block.starts[layout.lines], len(layout.text))
    differs = (characters != characters[0]).any(axis=0)
    varying = [match for match in _NUMBER.finditer(layout.text) if differs[slice(*match.span())].any()]
    # A number that is too long, or has a long exponent, may be infinite or rounded to 0 with different digits.
    always_finite = all(len(match[1]) <= _LONGEST_NUMBER and len(match[2] or b"") <= 2 for match in varying)
    if layout.lines.size < WORTH_TRIALS or not always_finite:
        return nothing, layout.lines
    readable = _readable_like_first(block, layout, varying)
    lines, remaining = layout.lines[readable], layout.lines[~readable]
    try:
        records = _Trials(read_line, block, Layout(lines, layout.text), varying).records()
    except _NotByTrialsError:
        return nothing, layout.lines
    except UNREADABLE:
        return nothing, remaining
    has_nan = any_of(map(np.isnan, records.values.values()), len(records))
    return Matches(records, lines, layout.lines, lines[: len(records)][has_nan]), remaining


def _readable_like_first(block: Block, layout: Layout, varying: Sequence[re.Match[bytes]]) -> Mask:
    """Return which lines can be read like the first.

    Outside strings no number of several digits may begin with 0, because that is invalid JSON. No number may be -0,
    which is not below 0 although it looks like numbers that are.
    """
    readable = np.ones(layout.lines.size, dtype=bool)
    unescaped = re.sub(rb"\\.", b"__", layout.text)
    data, starts = np.frombuffer(block.data, np.uint8), block.starts[layout.lines]
    for match in varying:
        is_in_string = unescaped.count(b'"', 0, match.start()) % 2 == 1
        if re.match(rb"\d\d", match[1]) and not is_in_string:
            readable &= data[starts + match.start(1)] != ZERO
        if match[0].startswith(b"-"):
            digits = byte_windows(data, starts + match.start(1), len(match[1]))
            readable &= ((digits != ZERO) & (digits != _POINT)).any(axis=1)
    return readable


class _NotByTrialsError(Exception):
    """Something in the record is neither constant nor a number of the line."""


class _Trials:
    """The records of a line with different digits, and the numbers that were put in.

    Raises:
        _NotByTrialsError: only some of the trials can be read; if none can, what reading raises.

    """

    def __init__(self, read_line: ReadLine, block: Block, layout: Layout, varying: Sequence[re.Match[bytes]]) -> None:
        self._block, self._layout, self._varying = block, layout, varying
        variants = _with_other_digits(layout.text, varying)
        self._numbers: list[list[float]] = []
        for match in varying:
            self._numbers.append([float(variant[slice(*match.span())]) for variant in variants])
        self._trials: list[JsonRecord | None] = []
        errors = []
        for variant in variants:
            try:
                self._trials.append(read_line(variant))
            except UNREADABLE as error:
                errors.append(error)
        if errors:
            raise _NotByTrialsError if self._trials else errors[0]

    def records(self) -> Records:
        """Return one row per line; none if lines of this layout have no number."""
        lines = self._block.first_line + self._layout.lines
        trials = [record for record in self._trials if record is not None]
        if not trials:
            return make_records(lines[:0], {})
        if len(trials) < TRIALS or len({(record.window, tuple(record.values)) for record in trials}) > 1:
            raise _NotByTrialsError
        values = {}
        for metric in trials[0].values:
            values[metric] = self._column([record.values[metric] for record in trials])
        columns = {}
        for name in POSITION_COLUMNS:
            outcomes = [getattr(record, name) for record in trials]
            if max(map(abs, outcomes)) >= 10**EXACT_DIGITS:
                raise _NotByTrialsError
            columns[name] = self._column(outcomes).astype(np.int64)
        times = self._column([record.time_seconds for record in trials])
        training = np.full(lines.size, trials[0].window == TRAINING)
        return make_records(lines, values, training=training, time_seconds=times, **columns)

    def _column(self, outcomes: Sequence[float]) -> Floats:
        """Return one column of the records, given its value in each trial."""
        if np.array_equal(outcomes, list(outcomes[:1]) * TRIALS, equal_nan=True):
            return np.full(self._layout.lines.size, float(outcomes[0]))
        origins = []
        for match, inputs in zip(self._varying, self._numbers, strict=True):
            for divisor in _DIVISORS:
                if [value / divisor for value in inputs] == list(outcomes):
                    origins.append((match, divisor))
        if len(origins) != 1:
            raise _NotByTrialsError
        [(match, divisor)] = origins
        starts = self._block.starts[self._layout.lines] + match.start()
        return read_numbers(self._block, starts, [match[0]], np.array([starts.size])).values / divisor


def _with_other_digits(text: bytes, varying: Sequence[re.Match[bytes]]) -> list[bytes]:
    """Return a line with different digits, TRIALS times; exponents stay, so that numbers are finite.

    No digit is 0, so that no number begins with it, and none appears twice at one position: so an integer that is
    made of a part of the digits does not seem to stay the same.
    """
    generator, variants = random.Random(0), [bytearray(text) for _ in range(TRIALS)]
    for match in varying:
        for position in range(*match.span(1)):
            if text[position] != _POINT:
                for variant, digit in zip(variants, generator.sample(b"123456789", TRIALS), strict=True):
                    variant[position] = digit
    return list(map(bytes, variants))
