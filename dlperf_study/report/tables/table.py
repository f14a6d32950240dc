"""A table of the report: text cells under labelled columns, as HTML and as LaTeX."""

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from dlperf_study.paths import StudyPaths
from dlperf_study.report.formatting import MISSING
from dlperf_study.report.tables.latex import latex_table


@dataclass(frozen=True)
class Link:
    """A footnote that leads to ``target``, a place on another page; empty where there is no such page."""

    text: str
    target: str

    def __str__(self) -> str:
        return self.text


Note = str | Link


@dataclass(frozen=True)
class Cell:
    """One printed value; ``interval`` stands in its own sub-column, ``note`` and ``links`` become footnotes.

    ``code``: it is the name of a file, set as such. ``anchor``: by which other pages lead to it.
    """

    text: str
    interval: str = ""
    note: str = ""
    code: bool = False
    links: tuple[Link, ...] = ()
    anchor: str = ""

    @property
    def notes(self) -> tuple[Note, ...]:
        """All its footnotes."""
        return (*([self.note] if self.note else []), *self.links)

    @classmethod
    def missing(cls, reason: str) -> "Cell":
        """Return the dash that stands for no value; the reason is shown below the table."""
        return cls(MISSING, note=reason)


@dataclass(frozen=True)
class Heading:
    """The head of one column."""

    label: str
    unit: str = ""
    numeric: bool = False
    interval: bool = False

    @property
    def span(self) -> int:
        """How many sub-columns it covers: the value and, where there is one, its interval."""
        return 2 if self.interval else 1

    @property
    def text(self) -> str:
        """The label with its unit, on one line."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True)
class Table:
    """A captioned table; ``empty`` is what is said instead when it has no row.

    ``groups`` names the group of each row; a group's name stands once, above its first row.
    """

    name: str
    title: str
    caption: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remarks: tuple[str, ...] = ()
    empty: str = "Nothing to show."
    groups: tuple[str, ...] = ()

    @cached_property
    def notes(self) -> dict[Note, str]:
        """The distinct notes of all cells and the mark of each, in order of appearance."""
        distinct = dict.fromkeys(note for row in self.rows for cell in row for note in cell.notes)
        return dict(zip(distinct, _marks(), strict=False))

    def marks(self, cell: Cell) -> str:
        """Return the marks of the notes of one of its cells."""
        return ",".join(self.notes[note] for note in cell.notes)

    @property
    def width(self) -> int:
        """How many sub-columns there are."""
        return sum(heading.span for heading in self.headings)

    def grouped(self) -> Iterator[tuple[str, tuple[Cell, ...]]]:
        """Yield each row after the name of the group that begins with it, or after nothing."""
        names = self.groups or ("",) * len(self.rows)
        for previous, name, row in zip(("", *names), names, self.rows, strict=False):
            yield (name if name != previous else ""), row

    def column(self, label: str) -> list[str]:
        """Return the printed values under one heading."""
        position = [heading.label for heading in self.headings].index(label)
        return [row[position].text for row in self.rows]

    def save(self, paths: StudyPaths) -> "Table":
        """Write the table as HTML and as LaTeX into the study's tables; return it, to be shown."""
        paths.tables.mkdir(parents=True, exist_ok=True)
        (paths.tables / f"{self.name}.html").write_text(self._repr_html_() + "\n", encoding="utf-8")
        (paths.tables / f"{self.name}.tex").write_text(latex_table(self), encoding="utf-8")
        return self

    def _repr_html_(self) -> str:
        caption = f"<b>{escape(self.title)}.</b> {escape(self.caption)}"
        body = _html_grid(self) if self.rows else f'<p class="nothing">{escape(self.empty)}</p>'
        return f'<figure class="table" id="table-{self.name}"><figcaption>{caption}</figcaption>{body}</figure>'


def _marks() -> Iterable[str]:
    letters = string.ascii_lowercase
    yield from letters
    yield from (first + second for first in letters for second in letters)


def _html_grid(table: Table) -> str:
    head = _html_head(table.headings)
    rows = "".join(_html_group(name, table) + _html_row(row, table) for name, row in table.grouped())
    notes = [f"<sup>{mark}</sup>&nbsp;{_html_note(note)}" for note, mark in table.notes.items()]
    below = "".join(f"<li>{line}</li>" for line in [*map(escape, table.remarks), *notes])
    grid = f"<table>{head}<tbody>{rows}</tbody></table>"
    return f'<div class="scroll">{grid}</div>' + (f'<ul class="notes">{below}</ul>' if below else "")


def _html_note(note: Note) -> str:
    text = escape(str(note))
    return f'<a href="{escape(note.target)}">{text}</a>' if isinstance(note, Link) and note.target else text


def _html_head(headings: Sequence[Heading]) -> str:
    cells = "".join(_html_heading(heading) for heading in headings)
    return f"<thead><tr>{cells}</tr></thead>" if any(heading.label for heading in headings) else ""


def _html_heading(heading: Heading) -> str:
    unit = f' <span class="unit">{escape(heading.unit)}</span>' if heading.unit else ""
    kind = ' class="number"' if heading.numeric else ""
    return f'<th scope="col" colspan="{heading.span}"{kind}>{escape(heading.label)}{unit}</th>'


def _html_group(name: str, table: Table) -> str:
    return f'<tr class="group"><th scope="rowgroup" colspan="{table.width}">{escape(name)}</th></tr>' if name else ""


def _html_row(row: Sequence[Cell], table: Table) -> str:
    marks = map(table.marks, row)
    return f"<tr>{''.join(map(_html_cell, row, table.headings, marks))}</tr>"


def _html_cell(cell: Cell, heading: Heading, marks: str) -> str:
    kind = ' class="number"' * heading.numeric + f' id="{escape(cell.anchor)}"' * bool(cell.anchor)
    mark = f"<sup>{marks}</sup>" if marks else ""
    text = f"<code>{escape(cell.text)}</code>" if cell.code else escape(cell.text)
    if not heading.interval:
        return f"<td{kind}>{text}{mark}</td>"
    return f'<td{kind}>{text}</td><td class="interval">{escape(cell.interval)}{mark}</td>'
