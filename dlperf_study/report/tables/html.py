"""A table of the report as HTML: whole in its file; on a page a long one with some rows, and a script with all.

A page of a study with hundreds of configurations stays small enough to be opened and sent: a long table shows there the
rows that a reader looks for first, and loads the others from a file beside the page when asked for them. The file is a
script, because a browser lets a page that was opened from a disk load nothing else.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from dlperf_study.core.wording import counted
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report.formatting import html_text
from dlperf_study.report.section import anchor_link, downloads, evidence_link, notebook_style, page_link

if TYPE_CHECKING:
    from dlperf_study.report.tables.table import Cell, Footnote, Heading, Table

#: A table with more rows is long, and how many of its rows a page shows at first where nothing says which.
MOST_ROWS, FIRST_ROWS = 100, 40
#: So many footnotes are shown below a table; more are folded.
MOST_OPEN = 2
#: A number with decimals.
_WITH_DECIMALS = re.compile(r".*\d\.(\d+)")
#: What may be on several lines: the parts of a path.
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+){2,}")


def is_long(table: "Table") -> bool:
    """Return whether a page shows only some rows of a table at first."""
    return len(table.rows) > MOST_ROWS


def html_table(table: "Table") -> str:
    """Return the table with its whole caption and all its notes: it explains itself wherever it is put."""
    notes = _list([*_note_lines(table), *_footnote_lines(table, table.footnotes)])
    return _figure(table, table.caption, _grid(table, range(len(table.rows))) + notes)


def html_on_page(table: "Table") -> str:
    """Return what a page shows: links to the files, definitions folded, and of a long table the first rows."""
    caption = table.caption if table.page_caption is None else table.page_caption
    definitions = _list(_note_lines(table))
    folded = f'<details class="definitions"><summary>Definitions and notes</summary>{definitions}</details>'
    files = downloads("tables", table.name, "csv", "tex") if table.is_saved and table.rows else ""
    positions: Sequence[int] = range(len(table.rows))
    button = ""
    if table.is_saved and is_long(table):
        positions = table.first or range(FIRST_ROWS)
        which = "the largest, the smallest and those with a remark" if table.first else "the first"
        button = (
            f'<p class="further">{len(positions)} of {len(table.rows)} rows are shown: {which}. '
            f'<button type="button" data-rows="tables/{escape(table.name)}.js">Show and search all rows</button></p>'
        )
    body = button + _grid(table, positions) + _footnotes(table, positions) + (folded if definitions else "")
    return notebook_style() + _figure(table, caption, body, anchor_link(f"table-{table.name}") + files)


def script_of_rows(table: "Table") -> str:
    """Return the script that gives a page all rows of a table with their footnotes."""
    positions = range(len(table.rows))
    content = json.dumps([table.name, _rows(table, positions), _footnotes(table, positions)])
    return f"allRows(...{content});\n"


def _figure(table: "Table", caption: str, body: str, links: str = "") -> str:
    heading = f"<b>{escape(table.title)}.</b> {escape(caption)}".rstrip() + links
    content = body if table.rows else f'<p class="nothing">{html_text(table.empty)}</p>'
    return f'<figure class="table" id="table-{table.name}"><figcaption>{heading}</figcaption>{content}</figure>'


def _note_lines(table: "Table") -> list[str]:
    anchors = {}
    for heading in table.headings:
        anchors[heading.label] = table.definition_anchor(heading)
    lines = []
    for note in table.notes_without_footnotes:
        anchor = anchors.get(note.partition(": ")[0])
        lines.append(f'<span id="{anchor}">{html_text(note)}</span>' if anchor else html_text(note))
    return lines


def _footnotes(table: "Table", positions: Sequence[int]) -> str:
    """Return the footnotes of the rows at these positions as a list."""
    footnotes: dict[Footnote, None] = {}
    for position in positions:
        for cell in table.rows[position]:
            footnotes |= dict.fromkeys(cell.footnotes)
    notes = _list(list(_footnote_lines(table, footnotes)))
    count = len(footnotes)
    if not count:
        return ""
    # Who points at a letter reads its note there; paper has all of them.
    summary = f"{counted(count, 'note')}, also shown where a letter is pointed at"
    state = " open" if count <= MOST_OPEN else ""
    return f'<details class="footnotes"{state}><summary>{summary}</summary>{notes}</details>'


def _footnote_lines(table: "Table", footnotes: "Iterable[Footnote]") -> Iterator[str]:
    for footnote in footnotes:
        line = html_text(str(footnote))
        if target := getattr(footnote, "target", ""):
            line = page_link(escape(target), line)
        yield f"<sup>{table.footnotes[footnote]}</sup>&nbsp;{line}"


def _list(lines: list[str]) -> str:
    """Return notes as a list; nothing of none."""
    return f'<ul class="notes"><li>{"</li><li>".join(lines)}</li></ul>' if lines else ""


def _grid(table: "Table", positions: Sequence[int]) -> str:
    head = ""
    for heading in table.headings:
        unit = f' <span class="unit">{escape(heading.unit)}</span>' if heading.unit else ""
        kind = ' class="number"' if heading.numeric else ""
        anchor = table.definition_anchor(heading)
        link = f'<a class="definition" href="#{anchor}" aria-label="definition"></a>' if anchor else ""
        column = ""
        if name := heading.column:
            # A page shows how its numbers were made, also where no note defines the column.
            definition = escape(f"{COLUMNS[name].label}: {COLUMNS[name].definition}.") if name in COLUMNS else ""
            column = f' data-column="{escape(name)}" data-definition="{definition}"'
        head += f'<th scope="col" colspan="{heading.span}"{kind}{column}>{escape(heading.label)}{link}{unit}</th>'
    is_headed = any(heading.label for heading in table.headings)
    head = f"<thead><tr>{head}</tr></thead>" if is_headed else ""
    # JupyterLab, which cuts off what is wider, has no style sheet of the report.
    body = f"<tbody>{_rows(table, positions)}</tbody>"
    return f'<div class="scroll" style="overflow-x:auto"><table>{head}{body}</table></div>'


def _rows(table: "Table", positions: Sequence[int]) -> str:
    """Return the rows at these positions, each group below its name."""
    lines, all_most_decimals = [], []
    for position, heading in enumerate(table.headings):
        decimals = [len(_decimals(row[position])) for row in table.rows] if heading.interval else []
        all_most_decimals.append(max(decimals, default=0))
    for group, row in table.grouped(positions):
        if group:
            lines.append(f'<tr class="group"><th scope="rowgroup" colspan="{table.width}">{escape(group)}</th></tr>')
        cells = map(partial(_html_cell, table), row, table.headings, all_most_decimals)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "".join(lines)


def _decimals(cell: "Cell") -> str:
    with_decimals = _WITH_DECIMALS.fullmatch(cell.text)
    return with_decimals[1] if with_decimals else ""


def _padding(cell: "Cell", most_decimals: int) -> str:
    """Return what takes the room of the decimals that a value has fewer than its column, so that points align."""
    if not cell.text[-1:].isdigit() or (missing := most_decimals - len(_decimals(cell))) <= 0:
        return ""
    point = "" if _decimals(cell) else "."
    return f'<i class="pad" data-pad="{point}{"0" * missing}"></i>'


def _html_cell(table: "Table", cell: "Cell", heading: "Heading", most_decimals: int) -> str:
    """Return a cell; the letters of its footnotes show these where they are pointed at."""
    kind = ' class="number"' if heading.numeric else ""
    anchor = f' id="{escape(cell.anchor)}"' if cell.anchor else ""
    escaped = _PATH.sub(lambda path: path[0].replace("/", "/<wbr>"), html_text(cell.marked))
    value = f"<code>{escaped}</code>" if cell.code else escaped
    if cell.evidence and table.is_saved:
        value = evidence_link(cell.evidence, value)
    title = escape("\n".join(map(str, cell.footnotes)))
    mark = f'<sup title="{title}">{table.marks(cell)}</sup>' if cell.footnotes else ""
    if not heading.interval:
        return f"<td{kind}{anchor}>{value}{mark}</td>"
    value += _padding(cell, most_decimals)
    return f'<td{kind}{anchor}>{value}</td><td class="interval">{escape(cell.interval)}{mark}</td>'
