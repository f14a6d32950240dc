"""What is known of a study while it is measured: a page that loads itself again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from dlperf_study.core.wording import counted, duration
from dlperf_study.report.terminal_answer import Throughputs

REFRESH_SECONDS = 10
_TEMPLATES = Path(__file__).parent / "templates"
#: Who looks after each round and stops when the difference is clear finds too many.
CAVEAT = (
    "Conclude when the study has ended: until then intervals change, and the report takes all comparisons together."
)


@dataclass(frozen=True)
class SoFar:
    """The progress of a study, and the throughputs of ``runs_known`` runs.

    ``report``: the address of its report, if that is built from these runs.
    """

    title: str
    sentence: str
    written: datetime
    is_over: bool = False
    report: str = ""
    runs_known: int = 0
    throughputs: Throughputs | None = None


def time_left(runs_left: int, seconds_left: float | None, now: datetime) -> str:
    """Return how many runs remain, and when they will end."""
    if seconds_left is None:
        return f"To do: {counted(runs_left, 'run')}; after the first one it is known how long they take."
    end = now + timedelta(seconds=seconds_left)
    clock = end.strftime("%H:%M" if end.date() == now.date() else "%Y-%m-%d %H:%M")
    return f"To do: {counted(runs_left, 'run')}, about {duration(seconds_left)}, until {clock}."


def page(so_far: SoFar) -> str:
    """Return the page; it reloads itself until the study is over."""
    rows, notes = list[Sequence[str]](), list[str]()
    if so_far.throughputs and so_far.throughputs.rows:
        rows, notes = so_far.throughputs.with_bars, so_far.throughputs.notes
        if not so_far.is_over:
            notes = [*notes, CAVEAT]
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, finalize=_escaped, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["count"] = counted
    template = environment.get_template("progress.html.j2")
    return template.render(so_far=so_far, refresh=REFRESH_SECONDS, rows=rows, notes=notes) + "\n"


def _escaped(value: object) -> Markup:
    return value if isinstance(value, Markup) else Markup(escape(str(value)))
