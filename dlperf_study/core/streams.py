"""Standard streams that a command can rely on: they are open, and no character is one that they can't write."""

import io
import os
import sys
from typing import TextIO

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def mend_streams() -> None:
    """Give the null device to streams that are closed, and let the others write what their encoding has not as escapes.

    A file that is opened later would get the number of a closed stream, and what processes print would go into it.
    """
    for descriptor, (name, mode) in enumerate(_STREAMS):
        stream = getattr(sys, name)
        if stream is None:
            _occupy(descriptor)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (it stays open)
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _occupy(descriptor: int) -> None:
    """Give a file descriptor that is closed the null device, for the processes that inherit it."""
    try:
        os.fstat(descriptor)
    except OSError:
        _redirect_to_null(descriptor)


def silence(stream: TextIO) -> None:
    """Let what is printed to a stream from now on go nowhere, also what it has not written yet."""
    _redirect_to_null(stream.fileno())


def _redirect_to_null(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null == descriptor:
        os.set_inheritable(null, True)
    else:
        os.dup2(null, descriptor)
        os.close(null)
