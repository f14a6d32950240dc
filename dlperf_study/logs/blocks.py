"""A log as blocks of whole lines, however long it is: constant memory, whatever the bytes are."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BufferedIOBase

import numpy as np
from numpy.typing import NDArray

from dlperf_study.errors import LogError
from dlperf_study.logs.sources import DAMAGE, Source

BLOCK_BYTES = 1 << 20
#: No program behind these logs prints longer lines; what is longer is skipped, and said.
LONGEST_LINE = 1 << 20
COLOUR = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
SNIFFED_BYTES = 512
_NEWLINE = 10
#: What stands in a text for bytes that are none.
_REPLACED = "\ufffd"

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Whole lines, each ending in a newline; ``first_line`` is the number of the first, from 1.

    ``is_cut``: it is one line that had no end, so that its last number may lack digits.
    """

    data: bytes
    first_line: int
    is_cut: bool = False

    @cached_property
    def ends(self) -> Positions:
        """Where its newlines are."""
        return np.flatnonzero(np.frombuffer(self.data, np.uint8) == _NEWLINE)

    @cached_property
    def starts(self) -> Positions:
        """Where its lines start."""
        return np.concatenate(([0], self.ends[:-1] + 1))

    def line_indices(self, positions: Positions) -> Positions:
        """Return which of its lines, from 0, each position lies in."""
        return np.searchsorted(self.ends, positions)

    def line(self, index: int) -> bytes:
        """Return one of its lines, from 0, without its end."""
        return self.data[int(self.starts[index]) : int(self.ends[index])]


class Blocks:
    """The blocks of one open log. After the last one: which lines were skipped, and what was wrong with the bytes.

    ``zeros``: the first line that holds a zero byte, 0 where none does. ``undecodable``: how many lines hold bytes that
    are no text, and ``first_undecodable`` the first of them.
    """

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self.skipped: list[int] = []
        self.damage = ""
        self.zeros = 0
        self.undecodable = self.first_undecodable = 0
        self.lines = 0

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks of whole lines. A carriage return ends a line too; colours are taken out."""
        rest, skipping = b"", False
        for chunk in _unix_lines(self._chunks()):
            if skipping:
                _, newline, chunk = chunk.partition(b"\n")
                if not newline:
                    continue
                self._skip()
            end = chunk.rfind(b"\n") + 1
            if end:
                yield self._block(rest + chunk[:end])
                rest = b""
            rest += chunk[end:]
            skipping = len(rest) > LONGEST_LINE
            rest = b"" if skipping else rest
        if skipping:
            self._skip()
        elif rest:
            yield self._block(rest + b"\n", is_cut=True)

    def _skip(self) -> None:
        self.lines += 1
        self.skipped.append(self.lines)

    def _block(self, data: bytes, is_cut: bool = False) -> Block:
        block = Block(COLOUR.sub(b"", data) if b"\x1b" in data else data, self.lines + 1, is_cut)
        if not self.zeros and b"\0" in data:
            self.zeros = self.lines + 1 + data.count(b"\n", 0, data.index(b"\0"))
        self._count_undecodable(data)
        self.lines += block.ends.size
        return block

    def _count_undecodable(self, data: bytes) -> None:
        if data.isascii() or _REPLACED not in (text := data.decode(errors="replace")):
            return
        odd = [number for number, line in enumerate(text.split("\n"), self.lines + 1) if _REPLACED in line]
        self.first_undecodable = self.first_undecodable or odd[0]
        self.undecodable += len(odd)

    def _chunks(self) -> Iterator[bytes]:
        """Yield what the file holds, as far as it can be read."""
        chunk = self._read()
        encoding = _wide_encoding(chunk[:SNIFFED_BYTES])
        decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
        while chunk:
            yield decoder.decode(chunk).encode() if decoder else chunk
            chunk = self._read()

    def _read(self) -> bytes:
        """Return the next bytes, less than BLOCK_BYTES only at the end: that of the file, or what is whole of it."""
        parts, missing = [], 0 if self.damage else BLOCK_BYTES
        while missing:
            try:
                part = self._file.read1(missing)
            except (*DAMAGE, OSError) as error:
                self.damage = str(error) or type(error).__name__
                break
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


def _wide_encoding(start: bytes) -> str:
    """Return the encoding of a text whose every other byte is 0, as some shells write it; else nothing."""
    for encoding, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[0::2])):
        if zeros.count(0) > len(zeros) * 0.8:
            return encoding
    return ""


def _unix_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Make every line end in a newline; a pair of carriage return and newline may be cut by the end of a chunk."""
    held = b""
    for chunk in chunks:
        chunk = held + chunk
        held = b"\r" if chunk.endswith(b"\r") else b""
        chunk = chunk[: len(chunk) - len(held)]
        yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk
    if held:
        yield b"\n"


# Files that are no logs at all: empty ones, and those of bytes that are no text.


#: How much of a file is looked at, and which share of it may be what no terminal shows.
LOOKED_AT, ALLOWED_SHARE = 1 << 12, 0.02
#: What stands in no text of any encoding that keeps ASCII: all control characters but those of lines and terminals.
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\b\f\x1b"))


def textless(source: Source) -> str:
    """Return in words that a file holds no text; nothing where it holds some, or can't be read."""
    try:
        with source.open() as file:
            blocks = Blocks(file)
            first = next(iter(blocks), None)
    except LogError:
        return ""
    if first is None:
        return "" if blocks.damage else "holds no line of text" if blocks.skipped else "is empty"
    if not first.data.strip() and len(first.data) < BLOCK_BYTES:
        return "is empty but for blank lines"
    return "holds no text" if _is_binary(first.data[:LOOKED_AT]) else ""


def _is_binary(start: bytes) -> bool:
    return len(start) - len(start.translate(None, _CONTROLS)) > ALLOWED_SHARE * len(start)
