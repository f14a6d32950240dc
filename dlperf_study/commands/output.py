"""What commands print: lines, in colour on a terminal, and JSON."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import outputs_folder
from dlperf_study.core.writing import full_disk, naming

#: What messages call the standard output.
STANDARD_OUTPUT = Path("standard output")


def print_line(text: str) -> None:
    """Print a text at once, in colour on a terminal; an error names the standard output."""
    with naming(STANDARD_OUTPUT):
        if shows_colour():
            from dlperf_study.core.terminal import print_in_colour

            print_in_colour(text)
        else:
            print(text, flush=True)


def print_aside(text: str) -> None:
    """Print a text that is no result of a command, to standard error."""
    print(text, file=sys.stderr, flush=True)


def print_json(content: Mapping[str, Any]) -> None:
    """Print the result of a command as JSON; a path or a level of an enumeration is its text."""
    with naming(STANDARD_OUTPUT):
        print(json.dumps(content, indent=2, ensure_ascii=False, default=str), flush=True)


def print_error(message: str) -> int:
    """Print an error, and whether the disk that commands write to is full; return the exit code."""
    print("; ".join(filter(None, [f"error: {message}", full_disk(outputs_folder())])), file=sys.stderr)
    return 1


def shows_colour() -> bool:
    """Return whether the output is a terminal that shows colours, and nobody declined them (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
