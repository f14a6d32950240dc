"""What is known of a study while it is measured: a page that loads itself again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from pathlib import Path

from dlperf_study.core.wording import counted, duration
from dlperf_study.report.formatting import text_if
from dlperf_study.report.terminal_answer import Rates

REFRESH_SECONDS = 10
_STYLE = (Path(__file__).parent / "templates" / "progress.css").read_text(encoding="utf-8").strip()
#: Who looks after each round and stops when the difference is clear finds too many.
CAVEAT = (
    "Conclude when the study has ended: until then intervals change, and the report takes all comparisons together."
)


@dataclass(frozen=True)
class SoFar:
    """The progress of a study, and the rates of ``runs_known`` runs.

    ``report``: the address of its report, if that is built from these runs.
    """

    title: str
    sentence: str
    written: datetime
    is_over: bool = False
    report: str = ""
    runs_known: int = 0
    rates: Rates | None = None


def time_left(runs_left: int, seconds_left: float | None, now: datetime) -> str:
    """Return how many runs remain, and when they will end."""
    if seconds_left is None:
        return f"To do: {counted(runs_left, 'run')}; after the first one it is known how long they take."
    end = now + timedelta(seconds=seconds_left)
    clock = end.strftime("%H:%M" if end.date() == now.date() else "%Y-%m-%d %H:%M")
    return f"To do: {counted(runs_left, 'run')}, about {duration(seconds_left)}, until {clock}."


def page(so_far: SoFar) -> str:
    """Return the page; it reloads itself until the study is over."""
    refresh = text_if(not so_far.is_over, f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">')
    title = escape(so_far.title)
    lines = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}',
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>',
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{escape(so_far.sentence)}</p>",
        *([f'<p><a href="{escape(so_far.report)}">The report</a></p>'] if so_far.report else []),
        *_table(so_far),
        f'<p class="note">Written at {so_far.written:%Y-%m-%d %H:%M:%S}.</p></body></html>',
    ]
    return "\n".join(lines) + "\n"


def _table(so_far: SoFar) -> Iterator[str]:
    if so_far.rates is None or not so_far.rates.rows:
        return
    headings, *rows = so_far.rates.with_bars
    yield f"<p>From {counted(so_far.runs_known, 'completed run')}:</p>"
    yield f'<div class="wide"><table><thead><tr>{_cells("th", headings)}</tr></thead><tbody>'
    for row in rows:
        yield f"<tr>{_cells('td', row)}</tr>"
    yield "</tbody></table></div>"
    for note in (*so_far.rates.notes, *([] if so_far.is_over else [CAVEAT])):
        yield f'<p class="note">{escape(note)}</p>'


def _cells(tag: str, texts: Sequence[str]) -> str:
    """Return the cells of a row; the third is the bar."""
    cells = ""
    for column, content in enumerate(texts):
        kind = text_if(column == 2, ' class="bar"')
        cells += f"<{tag}{kind}>{escape(content)}</{tag}>"
    return cells
