"""The wire format of Protocol Buffers: the fields of a message, whichever message it is."""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

#: Wire types; the struct format of those of fixed size.
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_FIXED = {_DOUBLE: "<d", _FLOAT: "<f"}


class DamagedRecordError(OSError):
    """A stored record that is cut or changed; the message names its first byte."""


def fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield number and value of each field of a message; raises ValueError, IndexError, struct.error if damaged."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield key >> 3, value
        elif kind == _BYTES:
            length, position = _varint(message, position)
            if position + length > len(message):
                raise ValueError("a field is longer than its message")
            yield key >> 3, message[position : position + length]
            position += length
        elif kind in _FIXED:
            [fixed] = struct.unpack_from(_FIXED[kind], message, position)
            yield key >> 3, shortest(np.float32(fixed)) if kind == _FLOAT else fixed
            position += struct.calcsize(_FIXED[kind])
        else:
            raise ValueError(f"unknown wire type {kind}")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return an integer and the position after it."""
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def shortest(number: np.floating[Any]) -> float:
    """Return the number with the fewest digits that is this one in its own precision: 0.1 and not 0.10000000149."""
    return float(str(number))
