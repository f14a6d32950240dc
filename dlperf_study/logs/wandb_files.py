"""Weights & Biases run files as lines: a JSON object per history record.

After 7 bytes it is a LevelDB log: blocks of 32 KiB with pieces of records, each after its checksum, length and kind. A
record is a Protocol Buffers message ``Record``, of which only the history and the end of the run are read.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any

from dlperf_study.core.errors import LogError
from dlperf_study.logs.scalar_rows import LONGEST_RECORD, DamagedRecordError, Scalars, fields, scalar_rows

HISTORY_ROW = "Weights & Biases row: "
_SUFFIX = ".wandb"
_HEADER = b":W&B\xe1\xbe\x00"
_BLOCK_BYTES = 32768
_PIECE = struct.Struct("<IHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
#: Fields of a Record; of its history: an item, of which the name is one word or several, and its value as JSON.
_HISTORY, _EXIT = 2, 18
_ITEM, _NAME, _NAME_PART, _VALUE = 1, 1, 2, 16
_EXIT_CODE = 1
#: What it adds to what the program gives.
_STEP, _TIME = "_step", "_timestamp"


def is_wandb_file(name: str) -> bool:
    """Return whether a name belongs to a run file."""
    return name.endswith(_SUFFIX)


def history_rows(name: str, file: BufferedIOBase) -> Iterator[bytes]:
    """Yield a line per history record; ``name``: for messages."""
    return scalar_rows(name, HISTORY_ROW, _history(name, file))


def _history(name: str, file: BufferedIOBase) -> Iterator[Scalars]:
    header = file.read(len(_HEADER))
    if header != _HEADER:
        reason = "is empty"
        if header:
            reason = "is not a readable Weights & Biases file"
        raise LogError(f"{name}: {reason}")
    has_ended = False
    for offset, data in _records(file):
        try:
            for field, value in fields(data):
                if field == _HISTORY and isinstance(value, bytes):
                    yield _scalars(value)
                elif field == _EXIT and isinstance(value, bytes):
                    has_ended = True
                    if code := dict(fields(value)).get(_EXIT_CODE, 0):
                        raise LogError(f"{name}: the program ended with exit code {code!r}")
        except (ValueError, IndexError, OverflowError, RecursionError, struct.error) as error:
            raise DamagedRecordError(f"the record at byte {offset} is not a Weights & Biases record") from error
    if not has_ended:
        raise DamagedRecordError("no record of the end of the run: it was killed, or is still running")


def _records(file: BufferedIOBase) -> Iterator[tuple[int, bytes]]:
    """Yield each record and the position of its first piece."""
    start, parts, size = 0, list[bytes](), 0
    for offset, kind, content in _pieces(file):
        if (kind in (_MIDDLE, _LAST)) != bool(parts):
            raise DamagedRecordError(f"the record at byte {start if parts else offset} is cut")
        start = start if parts else offset
        parts.append(content)
        size += len(content)
        if size > LONGEST_RECORD:
            raise DamagedRecordError(f"the record at byte {start} has more than {LONGEST_RECORD} bytes")
        if kind in (_WHOLE, _LAST):
            yield start, b"".join(parts)
            parts, size = [], 0
    if parts:
        raise DamagedRecordError(f"the record at byte {start} is cut")


def _pieces(file: BufferedIOBase) -> Iterator[tuple[int, int, bytes]]:
    """Yield position, kind and content of each piece."""
    offset = len(_HEADER)
    while True:
        left_in_block = _BLOCK_BYTES - offset % _BLOCK_BYTES
        if left_in_block < _PIECE.size:
            # No piece begins so near to the end of a block.
            offset += len(file.read(left_in_block))
        header = file.read(_PIECE.size)
        if not header:
            return
        content = b""
        if len(header) == _PIECE.size:
            checksum, length, kind = _PIECE.unpack(header)
            content = file.read(length)
        if len(header) < _PIECE.size or len(content) < length:
            raise DamagedRecordError(f"the record at byte {offset} is cut")
        if kind not in (_WHOLE, _FIRST, _MIDDLE, _LAST) or zlib.crc32(content, zlib.crc32(bytes([kind]))) != checksum:
            raise DamagedRecordError(f"the record at byte {offset} is damaged: its checksum does not match")
        yield offset, kind, content
        offset += len(header) + len(content)


def _scalars(history: bytes) -> Scalars:
    """Return the numbers of a history record."""
    values: dict[str, float] = {}
    for field, item in fields(history):
        if field == _ITEM and isinstance(item, bytes):
            name, value = _item(item)
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[name] = float(value)
    step, time = values.pop(_STEP, -1.0), values.pop(_TIME, float("nan"))
    return Scalars(int(step), time, values)


def _item(item: bytes) -> tuple[str, Any]:
    """Return name and value of an item; nested names as a path."""
    path, value = [], None
    for field, content in fields(item):
        if field in (_NAME, _NAME_PART) and isinstance(content, bytes):
            path.append(content.decode(errors="replace"))
        elif field == _VALUE and isinstance(content, bytes):
            value = json.loads(content)
    # Numbers that JSON does not have are texts.
    return "/".join(path), float(value) if value in ("NaN", "Infinity", "-Infinity") else value
