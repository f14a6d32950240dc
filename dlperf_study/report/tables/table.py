"""A table of the report: text cells under labelled columns, as HTML and as LaTeX."""

import csv
import io
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import chain, count, product, repeat

from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.spreadsheets import disarmed
from dlperf_study.core.writing import write_atomically
from dlperf_study.metrics.statistics import Bounded
from dlperf_study.report.formatting import MISSING, format_bounded, html_text
from dlperf_study.report.section import anchor_link, downloads, evidence_link
from dlperf_study.report.tables.latex import latex_table

#: What may be on several lines: the parts of a path.
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+){2,}")


@dataclass(frozen=True)
class Page:
    """One page of the report and the notebook it is made from."""

    notebook: str
    title: str
    file: str

    @classmethod
    def answering(cls, question: str) -> "Page":
        """Return the page that answers one of the questions a study may ask."""
        return cls(question, question.capitalize(), f"{question}.html")


@dataclass(frozen=True)
class Link:
    """A footnote that leads to ``target``, an anchor on another page; empty where there is no such page."""

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
    value was computed from.
    """

    text: str
    interval: str = ""
    footnote: str = ""
    code: bool = False
    further: tuple[Footnote, ...] = ()
    anchor: str = ""
    evidence: str = ""

    @property
    def printed(self) -> str:
        """The value with its interval."""
        return " ".join(filter(None, (self.text, self.interval)))

    @property
    def footnotes(self) -> tuple[Footnote, ...]:
        """All its footnotes."""
        return (self.footnote, *self.further) if self.footnote else self.further

    @classmethod
    def missing(cls, reason: str, *further: str) -> "Cell":
        """Return the dash of a missing value; the reason is a footnote, and each further one."""
        return cls(MISSING, footnote=reason, further=further)

    @classmethod
    def of(cls, value: Bounded, no_interval: str, decision: float | None = None) -> "Cell":
        """Return a value and its interval; the reason why it has none is a footnote."""
        printed, interval = format_bounded(*value, decision)
        return cls(printed, interval, "" if interval else no_interval)


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
    """A captioned table with ``notes`` below it; ``empty`` is shown instead when it has no row.

    ``groups`` names the group of each row; a group's name is printed once, above its first row. ``page_caption``: what
    a page shows of the caption, because it says the rest once; None: all of it. The files keep the whole caption.
    ``is_saved``: a page can lead to its files.
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

    @property
    def is_empty(self) -> bool:
        """Whether it has no row."""
        return not self.rows

    @cached_property
    def footnotes(self) -> dict[Footnote, str]:
        """The distinct footnotes of all cells and the mark of each, in order of appearance."""
        cells = chain.from_iterable(self.rows)
        distinct = dict.fromkeys(chain.from_iterable(cell.footnotes for cell in cells))
        return dict(zip(distinct, _marks(), strict=False))

    @property
    def notes_without_footnotes(self) -> list[str]:
        """The notes that are not there already: where a definition says why a value is missing, it is a footnote."""
        return [note for note in self.notes if note not in self.footnotes]

    def marks(self, cell: Cell) -> str:
        """Return the marks of the footnotes of one of its cells."""
        return ",".join(self.footnotes[footnote] for footnote in cell.footnotes)

    @property
    def width(self) -> int:
        """How many sub-columns there are."""
        return sum(heading.span for heading in self.headings)

    def grouped(self) -> Iterator[tuple[str, tuple[Cell, ...]]]:
        """Yield each row with the name of the group that begins with it, or an empty string."""
        groups = self.groups or ("",) * len(self.rows)
        previous = ""
        for group, row in zip(groups, self.rows, strict=True):
            yield (group if group != previous else ""), row
            previous = group

    def column(self, label: str) -> list[str]:
        """Return the printed values under one heading."""
        position = [heading.label for heading in self.headings].index(label)
        return [row[position].text for row in self.rows]

    def save(self, paths: StudyPaths) -> "Table":
        """Write the table as HTML, LaTeX and CSV into the study's tables; return it, to be shown."""
        write_atomically(paths.tables / f"{self.name}.html", self.html() + "\n")
        write_atomically(paths.tables / f"{self.name}.tex", latex_table(self))
        write_atomically(paths.tables / f"{self.name}.csv", self.csv())
        return replace(self, is_saved=True)

    def csv(self) -> str:
        """Return the printed values as CSV: group, values and intervals, and the footnotes of each row at its end.

        No text of it is a formula of a spreadsheet.
        """
        head = ["Group"] if self.groups else []
        for heading in self.headings:
            head += [heading.text, f"{heading.label}, interval"] if heading.interval else [heading.text]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(disarmed, [*head, "Notes"]))
        for group, row in zip(self.groups or ("",) * len(self.rows), self.rows, strict=True):
            values = [group] if self.groups else []
            for heading, cell in zip(self.headings, row, strict=True):
                values += [cell.text, cell.interval] if heading.interval else [cell.text]
            notes = dict.fromkeys(str(footnote) for cell in row for footnote in cell.footnotes)
            writer.writerow(map(disarmed, [*values, "; ".join(notes)]))
        return file.getvalue()

    def html(self) -> str:
        """Return the table with its whole caption and all its notes: it explains itself wherever it is put."""
        notes = _list([*self._note_lines(), *self._footnote_lines()])
        return self._figure(self.caption, notes)

    def _repr_html_(self) -> str:
        caption = self.caption if self.page_caption is None else self.page_caption
        definitions = _list(self._note_lines())
        folded = f'<details class="definitions"><summary>Definitions and notes</summary>{definitions}</details>'
        files = downloads("tables", self.name, "csv", "tex") if self.is_saved and self.rows else ""
        notes = _list(list(self._footnote_lines())) + (folded if definitions else "")
        return self._figure(caption, notes, anchor_link(f"table-{self.name}") + files)

    def _figure(self, caption: str, notes: str, links: str = "") -> str:
        heading = f"<b>{escape(self.title)}.</b> {escape(caption)}".rstrip() + links
        body = _html_grid(self) + notes if self.rows else f'<p class="nothing">{html_text(self.empty)}</p>'
        return f'<figure class="table" id="table-{self.name}"><figcaption>{heading}</figcaption>{body}</figure>'

    def definition_anchor(self, heading: Heading) -> str:
        """Return the name of the note that defines a column, to lead to it; empty where no note does."""
        is_defined = heading.label and any(
            note.startswith(f"{heading.label}: ") for note in self.notes_without_footnotes
        )
        return f"definition-{self.name}-{self.headings.index(heading)}" if is_defined else ""

    def _note_lines(self) -> list[str]:
        anchors = {}
        for heading in self.headings:
            anchors[heading.label] = self.definition_anchor(heading)
        lines = []
        for note in self.notes_without_footnotes:
            anchor = anchors.get(note.partition(": ")[0])
            lines.append(f'<span id="{anchor}">{html_text(note)}</span>' if anchor else html_text(note))
        return lines

    def _footnote_lines(self) -> Iterator[str]:
        for footnote, mark in self.footnotes.items():
            line = html_text(str(footnote))
            if isinstance(footnote, Link) and footnote.target:
                line = f'<a href="{escape(footnote.target)}">{line}</a>'
            yield f"<sup>{mark}</sup>&nbsp;{line}"


def _list(lines: list[str]) -> str:
    """Return notes as a list; nothing of none."""
    return f'<ul class="notes"><li>{"</li><li>".join(lines)}</li></ul>' if lines else ""


def _marks() -> Iterator[str]:
    """Yield a, b, …, z, aa, ab, … without an end."""
    for length in count(1):
        yield from map("".join, product(string.ascii_lowercase, repeat=length))


def _html_grid(table: Table) -> str:
    head = ""
    for heading in table.headings:
        unit = f' <span class="unit">{escape(heading.unit)}</span>' if heading.unit else ""
        kind = ' class="number"' if heading.numeric else ""
        anchor = table.definition_anchor(heading)
        link = f'<a class="definition" href="#{anchor}" aria-label="definition"></a>' if anchor else ""
        head += f'<th scope="col" colspan="{heading.span}"{kind}>{escape(heading.label)}{link}{unit}</th>'
    is_headed = any(heading.label for heading in table.headings)
    head = f"<thead><tr>{head}</tr></thead>" if is_headed else ""
    rows = []
    for group, row in table.grouped():
        if group:
            rows.append(f'<tr class="group"><th scope="rowgroup" colspan="{table.width}">{escape(group)}</th></tr>')
        cells = map(_html_cell, row, table.headings, map(table.marks, row), repeat(table.is_saved))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    # JupyterLab, which cuts off what is wider, has no style sheet of the report.
    return f'<div class="scroll" style="overflow-x:auto"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _html_cell(cell: Cell, heading: Heading, marks: str, is_saved: bool) -> str:
    kind = ' class="number"' if heading.numeric else ""
    anchor = f' id="{escape(cell.anchor)}"' if cell.anchor else ""
    mark = f"<sup>{marks}</sup>" if marks else ""
    escaped = _PATH.sub(lambda path: path[0].replace("/", "/<wbr>"), html_text(cell.text))
    value = f"<code>{escaped}</code>" if cell.code else escaped
    if cell.evidence and is_saved:
        value = evidence_link(cell.evidence, value)
    if not heading.interval:
        return f"<td{kind}{anchor}>{value}{mark}</td>"
    return f'<td{kind}{anchor}>{value}</td><td class="interval">{escape(cell.interval)}{mark}</td>'
