"""What commands print: lines, in colour on a terminal, and JSON."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import outputs_folder
from dlperf_study.core.progress import say_nothing
from dlperf_study.core.terminal import printable, printable_json, silence
from dlperf_study.core.writing import full_disk, naming

STANDARD_OUTPUT = Path("standard output")
_LINES_MAY_BE_LOST = ContextVar("lines_may_be_lost", default=False)


@contextmanager
def lines_may_be_lost(allowed: bool) -> Iterator[None]:
    """Let unprintable lines be lost meanwhile, if ``allowed``."""
    token = _LINES_MAY_BE_LOST.set(allowed)
    try:
        yield
    finally:
        _LINES_MAY_BE_LOST.reset(token)


def print_line(text: str) -> None:
    """Print a text at once, in colour on a terminal.

    Where lines may be lost, the first that can't be printed is the last that is tried.
    """
    printed = printable(text)
    try:
        with naming(STANDARD_OUTPUT):
            if shows_colour():
                from dlperf_study.core.terminal import print_in_colour

                print_in_colour(printed)
            else:
                print(printed, flush=True)
    except OSError as error:
        if not _LINES_MAY_BE_LOST.get():
            raise
        silence(sys.stdout)
        print_aside(f"{STANDARD_OUTPUT}: {error.strerror}; the command goes on, and prints no more lines there")


def progress_printer(options: argparse.Namespace) -> Callable[[str], None]:
    """Return what prints progress: nothing with ``--quiet``, standard error beside JSON."""
    if getattr(options, "quiet", False):
        return say_nothing
    if getattr(options, "json", False):
        return print_aside
    return print_line


def print_aside(text: str) -> None:
    """Print a text to standard error; it may be lost."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        # Python would try to write the rest when it exits, and end with code 120.
        with suppress(OSError):
            silence(sys.stderr)


def print_json(content: Mapping[str, Any]) -> None:
    """Print a result as JSON; paths and enumerations are texts."""
    with naming(STANDARD_OUTPUT):
        print(printable_json(json.dumps(content, indent=2, ensure_ascii=False, default=str)), flush=True)


def print_error(message: str) -> int:
    """Print an error, and a full disk; return the exit code."""
    print_aside("; ".join(filter(None, [f"error: {message}", full_disk(outputs_folder())])))
    return 1


def shows_colour() -> bool:
    """Return whether the output shows colours (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
