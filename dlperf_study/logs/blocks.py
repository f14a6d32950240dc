"""Blocks of whole lines of a log, read in constant memory."""

import codecs
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import cast

import numpy as np

from dlperf_study.core.arrays import Integers
from dlperf_study.core.errors import LogError
from dlperf_study.core.large_files import require_end
from dlperf_study.logs.format import Format

GZIP_MAGIC = b"\x1f\x8b"
#: What reading raises for compressed bytes that end too early or are damaged.
DAMAGE = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
#: What opening may raise: a missing file or member, a password, a method of compression that Python doesn't know, a
#: version or a name of a member that no archive has.
OPENING_ERRORS = (OSError, KeyError, RuntimeError, NotImplementedError, ValueError, *DAMAGE)
BLOCK_BYTES = 1 << 20
#: No program with a format here prints longer lines; longer ones are skipped, with a diagnostic.
LONGEST_LINE = 1 << 20
#: Control sequences of terminals, as colours.
_TERMINAL_CODES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_NEWLINE = ord("\n")
#: How many bytes tell the encoding; the character that decoding puts for bytes that are not UTF-8.
_ENCODING_BYTES, _REPLACEMENT = 512, "\ufffd"
#: How many bytes tell whether a file is text, and which share of them may be control characters.
_TEXT_BYTES, _ALLOWED_CONTROLS = 1 << 12, 0.02
#: Characters that no text contains in any encoding that keeps ASCII: all controls but those of lines and terminals.
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\b\f\x1b"))


@dataclass(frozen=True)
class LogSource:
    """One log: a file, or the ``member`` of a zip archive.

    ``display_name``: its name in messages, if not its path. ``own_format``: the format that its user declared for it.
    """

    path: Path
    member: str = ""
    display_name: str = field(default="", compare=False)
    own_format: Format | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.display_name or (f"{self.path}!{self.member}" if self.member else str(self.path))

    @property
    def name(self) -> str:
        """Its name without folders."""
        return Path(self.member or self.path).name

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open the log for reading, decompressed; raises LogError on failure."""
        with ExitStack() as stack:
            try:
                if self.member:
                    archive = stack.enter_context(zipfile.ZipFile(self.path))
                    file = cast(BufferedReader, stack.enter_context(archive.open(self.member)))
                else:
                    require_end(self.path)
                    file = stack.enter_context(self.path.open("rb"))
                is_compressed = file.peek(2)[:2] == GZIP_MAGIC
                opened = stack.enter_context(gzip.GzipFile(fileobj=file)) if is_compressed else file
            except OPENING_ERRORS as error:
                reason = getattr(error, "strerror", None) or error
                raise LogError(f"{self}: can't be read: {reason}") from error
            yield opened


def read_whole(source: LogSource, most_bytes: int) -> bytes:
    """Return the decompressed content of a file."""
    try:
        # Those that are made of several files open otherwise.
        with LogSource.open(source) as file:
            content = bytearray()
            # To read so many bytes at once would need the memory for all.
            while len(content) <= most_bytes and (block := file.read(BLOCK_BYTES)):
                content += block
    except (OSError, *DAMAGE) as error:
        raise LogError(f"{source}: can't be read: {error}") from error
    if len(content) > most_bytes:
        raise LogError(f"{source}: can't be read: it has more than {most_bytes / 1e6:.0f} MB")
    return bytes(content)


def log_sources(path: Path) -> list[LogSource]:
    """Return the logs in a file: members of an archive, else the file."""
    if not zipfile.is_zipfile(path):
        return [LogSource(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except OPENING_ERRORS as error:
        raise LogError(f"{path}: can't be read as an archive: {error}") from error
    return [LogSource(path, member.filename) for member in members]


class Lines(io.BufferedIOBase):
    """Lines as a file."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._rest = b""

    def read1(self, size: int = -1) -> bytes:
        """Return the next line, or its first bytes; nothing at the end."""
        content = self._rest or next(self._lines, b"")
        end = len(content) if size < 0 else size
        self._rest = content[end:]
        return content[:end]


@dataclass(frozen=True)
class Block:
    """Whole lines, each ending in a newline; ``first_line`` counts from 1.

    ``is_cut``: the last line of the log has no newline, so its last number may have lost digits.
    """

    data: bytes
    first_line: int
    is_cut: bool = False

    @cached_property
    def ends(self) -> Integers:
        """The positions of its newlines."""
        return np.flatnonzero(np.frombuffer(self.data, np.uint8) == _NEWLINE)

    @cached_property
    def starts(self) -> Integers:
        """The positions of the first characters of its lines."""
        return np.concatenate(([0], self.ends[:-1] + 1))

    def line(self, index: int) -> bytes:
        """Return one of its lines, from 0, without its newline."""
        return self.data[int(self.starts[index]) : int(self.ends[index])]


class Blocks:
    """The blocks of one open log, and the damage found in its bytes.

    ``skipped``: numbers of the skipped lines. ``damage``: the error in which the bytes end. ``first_zero_line``: the
    first line with a zero byte, or 0. ``undecodable``: the number of lines that are not UTF-8, ``first_undecodable``
    the first of them. ``lines``: the number of lines.
    """

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self.skipped: list[int] = []
        self.damage = ""
        self.first_zero_line = 0
        self.undecodable = self.first_undecodable = 0
        self.lines = 0

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks of whole lines, without colours; carriage returns end lines."""
        rest, skipping = b"", False
        for chunk in self._chunks():
            if skipping:
                _, newline, chunk = chunk.partition(b"\n")
                if not newline:
                    continue
                self._skip_line()
            end = chunk.rfind(b"\n") + 1
            if end:
                yield self._block(rest + chunk[:end])
                rest = b""
            rest += chunk[end:]
            skipping = len(rest) > LONGEST_LINE
            if skipping:
                rest = b""
        if skipping:
            self._skip_line()
        elif rest:
            yield self._block(rest + b"\n", is_cut=True)

    def _chunks(self) -> Iterator[bytes]:
        """Yield readable content, in an ASCII-compatible encoding with Unix newlines."""
        content = self._read_chunk()
        start, decoder = content[:_ENCODING_BYTES], None
        # A text in which every second byte is 0, as some shells write it, is UTF-16.
        for encoding, high_bytes in (("utf-16-be", start[0::2]), ("utf-16-le", start[1::2])):
            if high_bytes.count(0) > len(high_bytes) * 0.8:
                decoder = codecs.getincrementaldecoder(encoding)("replace")
        if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            decoder = codecs.getincrementaldecoder("utf-32")("replace")
        # A carriage return at the end of a chunk waits for the next one, which may begin with its newline.
        held = b""
        while content:
            chunk = held + (decoder.decode(content).encode() if decoder else content)
            held = b"\r" if chunk.endswith(b"\r") else b""
            chunk = chunk[: len(chunk) - len(held)]
            yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            content = self._read_chunk()
        if held:
            yield b"\n"

    def _read_chunk(self) -> bytes:
        """Return the next BLOCK_BYTES; fewer at the end or at damage."""
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

    def _skip_line(self) -> None:
        self.lines += 1
        self.skipped.append(self.lines)

    def _block(self, data: bytes, is_cut: bool = False) -> Block:
        """Return a block of lines and record damaged bytes."""
        block = Block(_TERMINAL_CODES.sub(b"", data) if b"\x1b" in data else data, self.lines + 1, is_cut)
        if not self.first_zero_line and b"\0" in data:
            self.first_zero_line = self.lines + 1 + data.count(b"\n", 0, data.index(b"\0"))
        if not data.isascii() and _REPLACEMENT in (text := data.decode(errors="replace")):
            lines = enumerate(text.split("\n"), self.lines + 1)
            undecodable = []
            for line_number, line in lines:
                if _REPLACEMENT in line:
                    undecodable.append(line_number)
            self.first_undecodable = self.first_undecodable or undecodable[0]
            self.undecodable += len(undecodable)
        self.lines += block.ends.size
        return block


def no_text_reason(source: LogSource) -> str:
    """Return why a file has no text; empty if it has."""
    try:
        with source.open() as file:
            blocks = Blocks(file)
            first = next(iter(blocks), None)
    except LogError:
        return ""
    if first is None:
        if blocks.damage:
            return ""
        if blocks.skipped:
            return "contains no line of text"
        return "is empty"
    if not first.data.strip() and len(first.data) < BLOCK_BYTES:
        return "is empty except for blank lines"
    start = first.data[:_TEXT_BYTES]
    controls = len(start) - len(start.translate(None, _CONTROLS))
    if controls > _ALLOWED_CONTROLS * len(start):
        return "contains no text"
    return ""
