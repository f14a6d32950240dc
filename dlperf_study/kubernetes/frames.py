"""How output travels between pods: pieces of bytes, each behind its length, and at the end an exit code."""

import struct
from collections.abc import Callable
from typing import IO

_LENGTH, _CODE = struct.Struct(">I"), struct.Struct(">i")


def piece(data: bytes) -> bytes:
    """Return some output as it travels."""
    return _LENGTH.pack(len(data)) + data


def end(code: int) -> bytes:
    """Return the exit code as it travels, behind a piece of no bytes."""
    return _LENGTH.pack(0) + _CODE.pack(code)


def receive(answers: IO[bytes], write: Callable[[bytes], object]) -> int | None:
    """Pass on every piece of output; return the exit code, or None when it never comes."""
    while len(header := answers.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(header)
        if not length:
            code = answers.read(_CODE.size)
            return int(_CODE.unpack(code)[0]) if len(code) == _CODE.size else None
        write(answers.read(length))
    return None
