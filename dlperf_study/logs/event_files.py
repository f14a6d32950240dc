"""TensorBoard event files as lines: one JSON object per event.

A file is a series of records: the length of the data (8 bytes, little-endian), its checksum, the data, and their
checksum. The data are a Protocol Buffers message ``Event``, of which only time, step and scalars are read.
"""

import struct
from collections.abc import Iterator
from functools import cache
from io import BufferedIOBase
from pathlib import PurePath

import numpy as np

from dlperf_study.core.errors import LogError
from dlperf_study.logs.scalar_rows import LONGEST_RECORD, DamagedRecordError, Scalars, fields, scalar_rows, shortest

EVENT_ROW = "TensorBoard row: "
_FILE_NAME = ".tfevents."
_HEADER_BYTES, _CHECKSUM_BYTES = 12, 4
#: The polynomial of CRC-32C with its bits reversed, and what masks a checksum of stored data.
_POLYNOMIAL, _MASK = 0x82F63B78, 0xA282EAD8
#: Fields of an Event; of a value in its summary; of a TensorProto, some of which contain numbers of one format.
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8
_DTYPE, _CONTENT, _FLOATS, _DOUBLES = 1, 4, 5, 6
_PACKED = {_FLOATS: "<f4", _DOUBLES: "<f8"}
#: Values of ``dtype``: float and double.
_CONTENT_TYPES = {1: "<f4", 2: "<f8"}


def is_event_file(name: str) -> bool:
    """Return whether a file has the name of an event file."""
    return _FILE_NAME in PurePath(name).name


def event_rows(name: str, file: BufferedIOBase) -> Iterator[bytes]:
    """Yield a line per event with scalars; ``name``: for messages."""
    return scalar_rows(name, EVENT_ROW, _events(name, file))


def _events(name: str, file: BufferedIOBase) -> Iterator[Scalars]:
    offset = -1
    for offset, data in _records(file):
        try:
            yield _event(data)
        except (ValueError, IndexError, struct.error) as error:
            raise DamagedRecordError(f"the record at byte {offset} is not a TensorBoard event") from error
    if offset < 0:
        raise LogError(f"{name}: is empty")


def _records(file: BufferedIOBase) -> Iterator[tuple[int, bytes]]:
    """Yield the data of each record and its first byte's position."""
    offset = 0
    while header := file.read(_HEADER_BYTES):
        if len(header) < _HEADER_BYTES:
            raise DamagedRecordError(f"the record at byte {offset} is cut")
        _check(header, offset)
        length = int.from_bytes(header[:-_CHECKSUM_BYTES], "little")
        if length > LONGEST_RECORD:
            raise DamagedRecordError(f"the record at byte {offset} has {length} bytes, more than any event")
        content = file.read(length + _CHECKSUM_BYTES)
        if len(content) < length + _CHECKSUM_BYTES:
            raise DamagedRecordError(f"the record at byte {offset} is cut")
        _check(content, offset)
        yield offset, content[:-_CHECKSUM_BYTES]
        offset += _HEADER_BYTES + len(content)


def _check(content: bytes, offset: int) -> None:
    """Raise DamagedRecordError if the checksum differs."""
    checksum = _masked_checksum(content[:-_CHECKSUM_BYTES])
    if checksum != int.from_bytes(content[-_CHECKSUM_BYTES:], "little"):
        raise DamagedRecordError(f"the record at byte {offset} is damaged: its checksum does not match")


def _masked_checksum(data: bytes) -> int:
    table, checksum = _checksum_table(), 0xFFFFFFFF
    for byte in data:
        checksum = table[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    checksum ^= 0xFFFFFFFF
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


@cache
def _checksum_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def _event(data: bytes) -> Scalars:
    """Return the scalars of an event."""
    values: dict[str, float] = {}
    step, wall_time = 0, float("nan")
    for field, value in fields(data):
        if field == _WALL_TIME and isinstance(value, float):
            wall_time = value
        elif field == _STEP and isinstance(value, int):
            step = value
        elif field == _SUMMARY and isinstance(value, bytes):
            values |= _scalars(value)
    return Scalars(step, wall_time, values)


def _scalars(summary: bytes) -> dict[str, float]:
    """Return the scalars of a summary by tag."""
    scalars = {}
    for _, content in fields(summary):
        if not isinstance(content, bytes):
            continue
        tag, scalar = "", None
        for field, value in fields(content):
            if field == _TAG and isinstance(value, bytes):
                tag = value.decode(errors="replace")
            elif field == _SIMPLE_VALUE and isinstance(value, float):
                scalar = value
            elif field == _TENSOR and isinstance(value, bytes):
                scalar = _only_number(value)
        if scalar is not None:
            scalars[tag] = scalar
    return scalars


def _only_number(tensor: bytes) -> float | None:
    """Return the number in a float tensor of one element."""
    elements: list[float] = []
    content_type = ""
    for field, value in fields(tensor):
        if field == _DTYPE and isinstance(value, int):
            content_type = _CONTENT_TYPES.get(value, "")
        elif field in _PACKED and isinstance(value, float):
            elements.append(value)
        elif isinstance(value, bytes) and (field in _PACKED or (field == _CONTENT and content_type)):
            elements += map(shortest, np.frombuffer(value, _PACKED.get(field, content_type)))
    return elements[0] if len(elements) == 1 else None
