"""What the command line shows: text tables and a progress display, by rich. Imported only by what prints."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

#: Rows are never wrapped here: a pipe keeps them whole, and a terminal wraps them itself.
UNLIMITED_WIDTH = 1_000_000


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under their headings as text, in columns as wide as their widest cell; without headings, rows only.

    Raises ValueError where a row is not as long as the headings.
    """
    # Importing rich takes a tenth of a second, and most commands print no table.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=any(headings))
    for heading in headings:
        table.add_column(Text(heading), no_wrap=True)
    for row in rows:
        if len(row) != len(headings):
            raise ValueError(f"row of {len(row)} cells under {len(headings)} headings: {row}")
        table.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=UNLIMITED_WIDTH, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def progress_display(unit: str) -> "Progress":
    """Return a bar with the amount done and the time left; ``unit`` is ``bytes`` or the plural of what is counted.

    It shows nothing where the output is no terminal. Lines that are printed meanwhile appear above it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console()
    amount = DownloadColumn() if unit == "bytes" else TextColumn(f"{{task.completed:.0f}} of {{task.total:.0f}} {unit}")
    times = (TimeElapsedColumn(), TextColumn("elapsed, about"), TimeRemainingColumn(), TextColumn("left"))
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        amount,
        *times,
        console=console,
        disable=not console.is_terminal,
        # Runs take minutes, so the speed is that of the whole study; drawing often would disturb what is measured.
        speed_estimate_period=86_400.0,
        refresh_per_second=1.0,
    )
