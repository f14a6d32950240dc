"""A table of the report: text cells under labelled columns, as HTML and as LaTeX."""

import csv
import io
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, filterfalse, product
from operator import attrgetter
from typing import Any

from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.terminal import text_table
from dlperf_study.core.writing import disarmed, write_atomically
from dlperf_study.metrics.statistics import Bounded
from dlperf_study.report.formatting import MISSING, format_bounded, marked, text_if
from dlperf_study.report.say import captions
from dlperf_study.report.tables.html import html_on_page, html_table, is_long, script_of_rows
from dlperf_study.report.tables.latex import latex_table


@dataclass(frozen=True)
class Page:
    """One page of the report and its notebook."""

    notebook: str
    title: str
    file: str

    @classmethod
    def answering(cls, question: str) -> "Page":
        """Return the page of one report section."""
        return cls(question, question.capitalize(), f"{question}.html")


@dataclass(frozen=True)
class Link:
    """A footnote linked to ``target``, an anchor on another page."""

    text: str
    target: str

    def __str__(self) -> str:
        return self.text


Footnote = str | Link


@dataclass(frozen=True)
class Cell:
    """One printed value; ``interval`` has a sub-column of its own.

    ``footnote`` and ``further`` ones are shown below the table. ``code``: the value is the name of a file, and is set
    as such. ``anchor``: the name by which other pages lead to the cell. ``evidence``: the anchor of the runs that the
    value was computed from. ``reason``: the part of the footnote that says why there is no interval; the rest is
    diagnostics. ``is_doubtful``: a serious diagnostic is about it.
    """

    text: str
    interval: str = ""
    footnote: str = ""
    code: bool = False
    further: tuple[Footnote, ...] = ()
    anchor: str = ""
    evidence: str = ""
    reason: str = ""
    is_doubtful: bool = False

    @property
    def marked(self) -> str:
        """The value, marked if it is doubtful."""
        return marked(self.text, self.is_doubtful)

    @property
    def printed(self) -> str:
        """The value with its interval."""
        return self.marked + text_if(self.interval, f" {self.interval}")

    @property
    def footnotes(self) -> tuple[Footnote, ...]:
        """All its footnotes."""
        if self.footnote:
            return (self.footnote, *self.further)
        return self.further

    @classmethod
    def missing(cls, reason: str, *further: str) -> "Cell":
        """Return the dash of a missing value, with its reasons."""
        return cls(MISSING, footnote=reason, further=further)

    @classmethod
    def of(cls, value: Bounded, no_interval: str, decision: float | None = None) -> "Cell":
        """Return a value and its interval, or a footnote without one."""
        printed, interval = format_bounded(*value, decision)
        reason = text_if(not interval, no_interval)
        return cls(printed, interval, reason, reason=reason)


@dataclass(frozen=True)
class Heading:
    """The head of a column; ``column``: its column of the dataset."""

    label: str
    unit: str = ""
    numeric: bool = False
    interval: bool = False
    column: str = ""

    @classmethod
    def number(cls, label: str, unit: str = "", interval: bool = False) -> "Heading":
        """Return the head of a column of numbers."""
        return cls(label, unit, numeric=True, interval=interval)

    @property
    def span(self) -> int:
        """The number of sub-columns: one, or two with an interval."""
        return 1 + self.interval

    @property
    def text(self) -> str:
        """The label with its unit, on one line."""
        return self.label + text_if(self.unit, f" ({self.unit})")


@dataclass(frozen=True)
class Table:
    """A captioned table with ``notes``; ``empty`` is shown without rows.

    ``groups`` names the group of each row; a group's name is printed once, above its first row. ``page_caption``: what
    a page shows of the caption, because it says the rest once; None: all of it. The files keep the whole caption.
    ``is_saved``: a page can lead to its files. ``first``: the positions of the rows that a page shows of a long table
    before a reader asks for all; empty: the first ones.
    """

    name: str
    title: str
    caption: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    empty: str = "Nothing to show."
    groups: tuple[str, ...] = ()
    page_caption: str | None = None
    is_saved: bool = False
    first: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no row."""
        return not self.rows

    @cached_property
    def footnotes(self) -> dict[Footnote, str]:
        """The distinct footnotes of all cells and their marks, in order."""
        cells = chain.from_iterable(self.rows)
        distinct = dict.fromkeys(chain.from_iterable(map(attrgetter("footnotes"), cells)))
        return dict(zip(distinct, _marks(), strict=False))

    @property
    def notes_without_footnotes(self) -> list[str]:
        """The notes that are not footnotes already."""
        return list(filterfalse(self.footnotes.__contains__, self.notes))

    def marks(self, cell: Cell) -> str:
        """Return the marks of the footnotes of one of its cells."""
        return ",".join(map(self.footnotes.__getitem__, cell.footnotes))

    @property
    def width(self) -> int:
        """How many sub-columns there are."""
        return sum(map(attrgetter("span"), self.headings))

    def grouped(self, positions: Sequence[int] | None = None) -> Iterator[tuple[str, tuple[Cell, ...]]]:
        """Yield rows, each with the group's name if it begins one."""
        previous = ""
        for position in range(len(self.rows)) if positions is None else positions:
            group = self.groups[position] if self.groups else ""
            yield text_if(group != previous, group), self.rows[position]
            previous = group

    def column(self, label: str) -> list[str]:
        """Return the printed values under one heading."""
        position = list(map(attrgetter("label"), self.headings)).index(label)
        return [row[position].text for row in self.rows]

    def save(self, paths: StudyPaths) -> "Table":
        """Write the table as HTML, LaTeX and CSV; return it."""
        write_atomically(paths.tables / f"{self.name}.html", html_table(self) + "\n")
        write_atomically(paths.tables / f"{self.name}.tex", latex_table(self, paths.folder.name))
        write_atomically(paths.tables / f"{self.name}.csv", self.csv())
        saved = replace(self, is_saved=True)
        if is_long(self):
            write_atomically(paths.tables / f"{self.name}.js", script_of_rows(saved))
        return saved

    def csv(self) -> str:
        """Return the table as CSV: values, intervals, footnotes."""
        head = ["Group"] if self.groups else []
        for heading in self.headings:
            head.append(heading.text)
            if heading.interval:
                head.append(f"{heading.label}, interval")
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_csv_cell, [*head, "Notes"]))
        for group, row in zip(self.groups or ("",) * len(self.rows), self.rows, strict=True):
            values = [group] if self.groups else []
            for heading, cell in zip(self.headings, row, strict=True):
                values.append(cell.text)
                if heading.interval:
                    values.append(cell.interval)
            notes = dict.fromkeys(str(footnote) for cell in row for footnote in cell.footnotes)
            writer.writerow(map(_csv_cell, [*values, "; ".join(notes)]))
        return file.getvalue()

    def __repr__(self) -> str:
        return f"{self.title}\n{self.empty if self.is_empty else as_text(self)}"

    def _repr_html_(self) -> str:
        return html_on_page(self)

    def definition_anchor(self, heading: Heading) -> str:
        """Return the anchor of the note that defines a column."""
        is_defined = heading.label and any(
            note.startswith(f"{heading.label}: ") for note in self.notes_without_footnotes
        )
        if is_defined:
            return f"definition-{self.name}-{self.headings.index(heading)}"
        return ""


def make_table(
    name: str,
    headings: Iterable[Any],
    rows: Iterable[Iterable[Any]],
    caption: str = "",
    *,
    title: str = "",
    empty: str = "",
    notes: Iterable[str] = (),
    groups: Iterable[str] = (),
    **options: Any,
) -> Table:
    """Return a table from headings and cells, or their texts."""
    # Title and empty text are those of its name if none are given.
    heads = tuple(heading if isinstance(heading, Heading) else Heading(heading) for heading in headings)
    cells = tuple(tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows)
    texts_of_name = {"title": "", "empty": "Nothing to show."} | captions().get(name, {})
    title, empty = title or texts_of_name["title"], empty or texts_of_name["empty"]
    return Table(name, title, caption, heads, cells, tuple(notes), empty, tuple(groups), **options)


def _csv_cell(text: str) -> str:
    """Return a text as CSV; Python leaves carriage returns unquoted."""
    return disarmed(text).replace("\r", "\n")


def _marks() -> Iterator[str]:
    """Yield a, b, …, z, aa, ab, … without an end."""
    for length in count(1):
        yield from map("".join, product(string.ascii_lowercase, repeat=length))


def as_text(table: Table) -> str:
    """Return the table as text: headings, groups, rows, notes."""
    rows = [list(map(attrgetter("printed"), row)) for row in table.rows]
    printed = text_table(list(map(attrgetter("text"), table.headings)), rows).split("\n")
    head = len(printed) - len(rows)
    lines = printed[:head]
    for (group, _), row_text in zip(table.grouped(), printed[head:], strict=True):
        lines += [group, row_text] if group else [row_text]
    return "\n".join([*lines, *table.notes_without_footnotes])
