"""JSON lines of one layout, read at once: by trying, one learns which number of a line becomes which of its record.

The first line is given other digits, a few times over. What of its record stays the same is the same for all lines;
what is each time one of the numbers put in is, in every line, the number that stands there. Whatever is neither, and
every line whose digits could make it no JSON, is left to be read one by one, and so says the same; a test sees to that.
"""

import random
import re
from collections.abc import Callable, Sequence

import numpy as np

from dlperf_study.arrays import Floats, Integers, Mask, any_of
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.digits import EXACT_DIGITS, read_numbers
from dlperf_study.logs.format import TRAINING, Entry
from dlperf_study.logs.layouts import ZERO, Layout, windows
from dlperf_study.logs.records import PLACES, Found, Records, records

#: Of fewer lines trying takes longer than reading.
WORTH_TRYING = 8
TRIES = 3
NUMBER = re.compile(rb"[-+]?(\d+(?:\.\d+)?)(?:[eE][-+]?(\d+))?")
#: What a format may divide by: milliseconds.
DIVISORS = (1.0, 1000.0)
#: Longer numbers may be infinite.
LONGEST_NUMBER = 100
_POINT = ord(".")

Read = Callable[[bytes], Entry | None]
#: What reading raises for an object that is not what it should be.
UNREADABLE = (ValueError, KeyError, TypeError, RecursionError, OverflowError)


def read_alike(read: Read, block: Block, layout: Layout) -> tuple[Found, Integers]:
    """Return what the lines of a layout say, and which lines are left; ``read`` reads one line."""
    nothing = Found.nothing(layout.lines)
    varied = _varied(block, layout)
    if layout.lines.size < WORTH_TRYING or not all(map(_is_finite, varied)):
        return nothing, layout.lines
    whole = _whole(block, layout, varied)
    lines = layout.lines[whole]
    try:
        rows = _Tries(read, block, Layout(lines, layout.text), varied).rows()
    except _Unlike:
        return nothing, layout.lines
    except UNREADABLE:
        return nothing, layout.lines[~whole]
    odd = any_of(map(np.isnan, rows.values.values()), len(rows))
    return Found(rows, lines, layout.lines, lines[: len(rows)][odd]), layout.lines[~whole]


def _varied(block: Block, layout: Layout) -> list[re.Match[bytes]]:
    """Return the numbers of the first line that are not the same in all."""
    characters = windows(np.frombuffer(block.data, np.uint8), block.starts[layout.lines], len(layout.text))
    differs = (characters != characters[0]).any(axis=0)
    return [match for match in NUMBER.finditer(layout.text) if differs[match.start() : match.end()].any()]


def _whole(block: Block, layout: Layout, varied: Sequence[re.Match[bytes]]) -> Mask:
    """Say which lines may be read as the first is.

    Outside texts no number of several digits may begin with 0, as it is no JSON; and none may be -0, which is not below
    0 although it looks as numbers that are.
    """
    whole = np.ones(layout.lines.size, dtype=bool)
    plain = re.sub(rb"\\.", b"__", layout.text)
    data, starts = np.frombuffer(block.data, np.uint8), block.starts[layout.lines]
    for match in varied:
        if re.match(rb"\d\d", match[1]) and plain.count(b'"', 0, match.start()) % 2 == 0:
            whole &= data[starts + match.start(1)] != ZERO
        if match[0].startswith(b"-"):
            digits = windows(data, starts + match.start(1), len(match[1]))
            whole &= ((digits != ZERO) & (digits != _POINT)).any(axis=1)
    return whole


def _is_finite(number: re.Match[bytes]) -> bool:
    """Say whether a number is finite and not 0 whatever its digits are."""
    return len(number[1]) <= LONGEST_NUMBER and len(number[2] or b"") <= 2


class _Unlike(Exception):
    """Something of the record is neither constant nor a number of the line."""


class _Tries:
    """The records of a line with other digits, and the numbers that were put in."""

    def __init__(self, read: Read, block: Block, layout: Layout, varied: Sequence[re.Match[bytes]]) -> None:
        self._block, self._layout, self._varied = block, layout, varied
        texts = _others(layout.text, varied)
        self._numbers = [[float(text[slice(*match.span())]) for match in varied] for text in texts]
        self._entries = _all_or_none(read, texts)

    def rows(self) -> Records:
        """Return a row per line; none where lines of this layout bear no number."""
        lines = self._block.first_line + self._layout.lines
        entries = [entry for entry in self._entries if entry is not None]
        if not entries:
            return records(lines[:0], {})
        if len(entries) < TRIES or len({(entry.window, tuple(entry.values)) for entry in entries}) > 1:
            raise _Unlike
        return records(
            lines,
            {name: self._column([entry.values[name] for entry in entries]) for name in entries[0].values},
            training=np.full(lines.size, entries[0].window == TRAINING),
            time_seconds=self._column([entry.time_seconds for entry in entries]),
            **{name: self._place([getattr(entry, name) for entry in entries]) for name in PLACES},
        )

    def _place(self, outcomes: Sequence[int]) -> Integers:
        if max(map(abs, outcomes)) >= 10**EXACT_DIGITS:
            raise _Unlike
        return self._column(outcomes).astype(np.int64)

    def _column(self, outcomes: Sequence[float]) -> Floats:
        """Return one thing that the lines say, given what each try made of it."""
        if np.array_equal(outcomes, list(outcomes[:1]) * TRIES, equal_nan=True):
            return np.full(self._layout.lines.size, float(outcomes[0]))
        numbers = zip(self._varied, zip(*self._numbers, strict=True), strict=True)
        tried = [(match, tried, divisor) for match, tried in numbers for divisor in DIVISORS]
        found = [(match, divisor) for match, tried, divisor in tried if [n / divisor for n in tried] == list(outcomes)]
        if len(found) != 1:
            raise _Unlike
        [(match, divisor)] = found
        starts = self._block.starts[self._layout.lines] + match.start()
        return read_numbers(self._block, starts, [match[0]], np.array([starts.size])).values / divisor


def _all_or_none(read: Read, texts: Sequence[bytes]) -> list[Entry | None]:
    """Read all texts; raises what reading raises where none can be read, and _Unlike where some can."""
    entries: list[Entry | None] = []
    errors = []
    for text in texts:
        try:
            entries.append(read(text))
        except UNREADABLE as error:
            errors.append(error)
    if errors:
        raise _Unlike if entries else errors[0]
    return entries


def _others(text: bytes, varied: Sequence[re.Match[bytes]]) -> list[bytes]:
    """Return a line with other digits, several times; exponents stay, to be finite.

    No digit is 0, lest a number begins with it, and none stands twice at one place: so a whole number that is made of
    a part of the digits does not seem to stay the same.
    """
    draw, others = random.Random(0), [bytearray(text) for _ in range(TRIES)]
    for place in (place for match in varied for place in range(*match.span(1)) if text[place] != _POINT):
        for other, digit in zip(others, draw.sample(b"123456789", TRIES), strict=True):
            other[place] = digit
    return list(map(bytes, others))
