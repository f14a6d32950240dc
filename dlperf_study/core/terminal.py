"""What the command line shows: text tables and a progress display, by rich, on standard streams that it can rely on.

Imported only by what prints.
"""

import io
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


#: Characters that control a terminal, or turn the direction of what follows.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return a text whose control characters are written as escapes: names come from files of others."""
    return _CONTROLS.sub(lambda control: control[0].encode("unicode_escape").decode(), text)


def printable_json(text: str) -> str:
    """Return JSON whose control characters are written as JSON's own escapes."""
    return _CONTROLS.sub(lambda control: f"\\u{ord(control[0]):04x}", text)


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under headings as text in aligned columns.

    Rows are never wrapped: a pipe keeps them whole, and a terminal wraps them itself. A line break in a cell becomes a
    space. Raises ValueError where a row is not as long as the headings.
    """
    # A table of rich takes a hundred times as long; most commands print no table, and import nothing for it.
    from rich.cells import cell_len, set_cell_size

    for row in rows:
        if len(row) != len(headings):
            raise ValueError(f"row of {len(row)} cells under {len(headings)} headings: {row}")
    lines = []
    for row in (headings, *rows):
        if row is not headings or any(headings):
            lines.append([printable(" ".join(cell.splitlines())) for cell in row])
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(set_cell_size, line, widths)).rstrip() for line in lines)


#: The colour of the words at the beginning of a line, or after two spaces in a table, that say how bad something is.
_COLOURS = {
    r"(?m)^(?:error|missing|failed)\b|(?<=  )\d+ errors?\b": "bold red",
    r"(?m)^warning\b|(?<=  )\d+ warnings?\b": "yellow",
    r"(?m)^(?:note|untested)\b|(?<=  )\d+ notes?\b": "cyan",
    r"(?m)^ok\b": "green",
}


def print_in_colour(text: str) -> None:
    """Print a text on a terminal, with coloured severities, unwrapped."""
    from rich.console import Console
    from rich.text import Text

    coloured = Text(text)
    for pattern, style in _COLOURS.items():
        coloured.highlight_regex(pattern, style)
    Console().print(coloured, soft_wrap=True)


def progress_display(unit: str) -> "Progress":
    """Return a bar with the amount done and time left.

    It shows nothing where the output is no terminal. Lines that are printed meanwhile appear above it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console()
    amount = DownloadColumn() if unit == "bytes" else TextColumn(f"{{task.completed:.0f}} of {{task.total:.0f}} {unit}")
    times = (TimeElapsedColumn(), TextColumn("elapsed, about"), TimeRemainingColumn(), TextColumn("left"))
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        amount,
        *times,
        console=console,
        disable=not console.is_terminal,
        # Runs take minutes, so the speed is that of the whole study; drawing often would disturb what is measured.
        speed_estimate_period=86_400.0,
        refresh_per_second=1.0,
    )


def mend_streams() -> None:
    """Replace closed streams by the null device; escape characters that can't be encoded.

    A file that is opened later would get the number of a closed stream, and what processes print would go into it.
    """
    for descriptor, (name, mode) in enumerate(_STREAMS):
        stream = getattr(sys, name)
        if stream is None:
            try:
                os.fstat(descriptor)
            except OSError:
                # For the processes that inherit it.
                _redirect_to_null(descriptor)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (it stays open)
        elif isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Discard what a stream prints from now on."""
    _redirect_to_null(stream.fileno())


def _redirect_to_null(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null == descriptor:
        os.set_inheritable(null, True)
    else:
        os.dup2(null, descriptor)
        os.close(null)
