"""A table as HTML: whole in its file; long ones partly on a page, with a script that loads all rows.

It is a script because a browser lets a page that was opened from a disk load nothing else.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from dlperf_study.core.wording import counted
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report.formatting import html_text, text_if
from dlperf_study.report.section import anchor_link, downloads, evidence_link, notebook_style, page_link

if TYPE_CHECKING:
    from dlperf_study.report.tables.table import Cell, Footnote, Heading, Table

#: A table with more rows is long, and how many of its rows a page shows at first where nothing says which.
MOST_ROWS, FIRST_ROWS = 100, 40
MOST_OPEN = 2
_WITH_DECIMALS = re.compile(r".*\d\.(\d+)")
#: What may be on several lines: the parts of a path.
_PATH = re.compile(r"(?<![\w.-])[\w.-]++(?:/[\w.-]+){2,}")


def is_long(table: "Table") -> bool:
    """Return whether a page shows only some rows at first."""
    return len(table.rows) > MOST_ROWS


def html_table(table: "Table") -> str:
    """Return the table with its whole caption and all notes."""
    notes = _list([*_note_lines(table), *_footnote_lines(table, table.footnotes)])
    return _figure(table, table.caption, _grid(table, range(len(table.rows))) + notes)


def html_on_page(table: "Table") -> str:
    """Return the table for a page: links, folded definitions, first rows."""
    caption = table.caption if table.page_caption is None else table.page_caption
    definitions = _list(_note_lines(table))
    folded = f'<details class="definitions"><summary>Definitions and notes</summary>{definitions}</details>'
    files = text_if(table.is_saved and table.rows, downloads("tables", table.name, "csv", "tex"))
    positions: Sequence[int] = range(len(table.rows))
    button = ""
    if table.is_saved and is_long(table):
        positions = table.first or range(FIRST_ROWS)
        which = "the largest, the smallest and those with a remark" if table.first else "the first"
        button = (
            f'<p class="further">{len(positions)} of {len(table.rows)} rows are shown: {which}. '
            f'<button type="button" data-rows="tables/{escape(table.name)}.js">Show and search all rows</button></p>'
        )
    body = button + _grid(table, positions) + _footnotes(table, positions) + text_if(definitions, folded)
    return notebook_style() + _figure(table, caption, body, anchor_link(f"table-{table.name}") + files)


def script_of_rows(table: "Table") -> str:
    """Return the script that holds all rows of a table."""
    positions = range(len(table.rows))
    content = json.dumps([table.name, _rows(table, positions), _footnotes(table, positions)])
    return f"allRows(...{content});\n"


def _figure(table: "Table", caption: str, body: str, links: str = "") -> str:
    heading = f"<b>{escape(table.title)}.</b> {escape(caption)}".rstrip() + links
    content = body if table.rows else f'<p class="nothing">{html_text(table.empty)}</p>'
    return f'<figure class="table" id="table-{table.name}"><figcaption>{heading}</figcaption>{content}</figure>'


def _note_lines(table: "Table") -> list[str]:
    anchors = {heading.label: table.definition_anchor(heading) for heading in table.headings}
    lines = []
    for note in table.notes_without_footnotes:
        anchor = anchors.get(note.partition(": ")[0])
        lines.append(f'<span id="{anchor}">{html_text(note)}</span>' if anchor else html_text(note))
    return lines


def _footnotes(table: "Table", positions: Sequence[int]) -> str:
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
    state = text_if(count <= MOST_OPEN, " open")
    return f'<details class="footnotes"{state}><summary>{summary}</summary>{notes}</details>'


def _footnote_lines(table: "Table", footnotes: "Iterable[Footnote]") -> Iterator[str]:
    for footnote in footnotes:
        line = html_text(str(footnote))
        if target := getattr(footnote, "target", ""):
            line = page_link(escape(target), line)
        yield f"<sup>{table.footnotes[footnote]}</sup>&nbsp;{line}"


def _list(lines: list[str]) -> str:
    return text_if(lines, f'<ul class="notes"><li>{"</li><li>".join(lines)}</li></ul>')


def _grid(table: "Table", positions: Sequence[int]) -> str:
    head = ""
    for heading in table.headings:
        unit = text_if(heading.unit, f' <span class="unit">{escape(heading.unit)}</span>')
        kind = text_if(heading.numeric, ' class="number"')
        anchor = table.definition_anchor(heading)
        link = text_if(anchor, f'<a class="definition" href="#{anchor}" aria-label="definition"></a>')
        column = ""
        if name := heading.column:
            # A page shows how its numbers were made, also where no note defines the column.
            definition = ""
            if name in COLUMNS:
                definition = escape(f"{COLUMNS[name].label}: {COLUMNS[name].definition}.")
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
        decimals = (len(_decimals(row[position])) for row in table.rows if heading.interval)
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
    """Return padding for missing decimals, so that decimal points align."""
    if not cell.text[-1:].isdigit() or (missing := most_decimals - len(_decimals(cell))) <= 0:
        return ""
    point = text_if(not _decimals(cell), ".")
    return f'<i class="pad" data-pad="{point}{"0" * missing}"></i>'


def _html_cell(table: "Table", cell: "Cell", heading: "Heading", most_decimals: int) -> str:
    """Return a cell; its footnote letters show the notes when pointed at."""
    kind, anchor = text_if(heading.numeric, ' class="number"'), text_if(cell.anchor, f' id="{escape(cell.anchor)}"')
    value = _PATH.sub(lambda path: path[0].replace("/", "/<wbr>"), html_text(cell.marked))
    if cell.code:
        value = f"<code>{value}</code>"
    if cell.evidence and table.is_saved:
        value = evidence_link(cell.evidence, value)
    title = escape("\n".join(map(str, cell.footnotes)))
    mark = text_if(cell.footnotes, f'<sup title="{title}">{table.marks(cell)}</sup>')
    if not heading.interval:
        return f"<td{kind}{anchor}>{value}{mark}</td>"
    value += _padding(cell, most_decimals)
    return f'<td{kind}{anchor}>{value}</td><td class="interval">{escape(cell.interval)}{mark}</td>'
