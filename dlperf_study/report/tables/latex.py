r"""A table of the report as LaTeX: as wide as a column of a two-column paper or as its page, and never wider.

The document must load ``array``, ``booktabs``, ``graphicx``, ``textcomp`` and ``threeparttable``. How wide a text will
be is known from the metrics of Computer Modern, which is wider than the usual fonts of journals.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from dlperf_study.report.formatting import latex_escaped, text_if

if TYPE_CHECKING:
    from dlperf_study.report.tables.table import Cell, Heading, Table

#: Widths of a column and of the text of a page in points, as most journals and conferences have them.
COLUMN_POINTS, PAGE_POINTS = 252.0, 504.0
_SEPARATION, _INTERVAL_SEPARATION = 3.0, 1.5
_NARROWEST, _HEADING_SLACK = 60.0, 6.0
_LINE_BREAK = r"\\"
_MARK = 0.75
#: After these a long name may continue on the next line.
_BREAKS = re.compile(r"(\\_|[/\-:=]|[.,](?!\d))(?=\S)")


@dataclass(frozen=True)
class _Type:
    """A type size; ``em``: points per em of Computer Modern."""

    command: str
    em: float


#: Small designs of the typeface are wider than the large one made smaller.
_SIZES = (_Type(r"\footnotesize", 8.5), _Type(r"\scriptsize", 7.97))


def latex_table(table: "Table", study: str) -> str:
    """Return a floating environment as wide as a column or page."""
    layout = _layout(table)
    float_name = "table" + text_if(layout.width > COLUMN_POINTS, "*")
    head = [
        f"\\caption{{\\textbf{{{latex_escaped(table.title)}.}} {latex_escaped(table.caption)}}}",
        f"\\label{{tab:{study}-{table.name}}}",
        f"{layout.type.command}\\setlength{{\\tabcolsep}}{{{_SEPARATION:g}pt}}",
    ]
    body = _grid(table, layout) if table.rows else [latex_escaped(table.empty)]
    lines = [f"\\begin{{{float_name}}}", r"\centering", *_assembled(table, layout, head, body)]
    return "\n".join([*lines, f"\\end{{{float_name}}}"]) + "\n"


def _assembled(table: "Table", layout: "_Layout", head: Sequence[str], body: Sequence[str]) -> list[str]:
    """Return caption, rows and notes; notes are as wide as rows."""
    notes = list(_notes(table))
    if layout.scaled:
        # A threeparttable can't measure rows inside a box.
        lines = [*head, r"\medskip", r"\resizebox{\textwidth}{!}{%", *body, "}"]
        paragraphs = [f"{_superscript(mark)}{note}\\par" for mark, note in notes]
        return [*lines, r"\begin{minipage}{\textwidth}\raggedright", *paragraphs, r"\end{minipage}"]
    items = [f"\\item[{mark}] {note}" for mark, note in notes]
    if items:
        items = [f"\\begin{{tablenotes}}[flushleft]{layout.type.command}", *items, r"\end{tablenotes}"]
    return [r"\begin{threeparttable}", *head, *body, *items, r"\end{threeparttable}"]


@dataclass(frozen=True)
class _Layout:
    """How the columns of a table are set.

    ``wrapped``: the width in points at which the text of a column is wrapped, by its position. ``stacked``: intervals
    are below their values. ``has_name_lines``: the first column is a line above each row. ``scaled``: nothing else
    makes it narrow enough.
    """

    type: _Type
    width: float
    stacked: bool = False
    wrapped: Mapping[int, float] = field(default_factory=dict)
    has_name_lines: bool = False
    scaled: bool = False


def _layout(table: "Table") -> _Layout:
    """Return a layout that fits a column or page, else scaled."""
    if layout := _fitting(table):
        return layout
    if not table.headings[0].numeric and (layout := _fitting(_drop_names(table))):
        return replace(layout, has_name_lines=True)
    # Wider than a page, with columns as narrow as they can be.
    smallest = _SIZES[-1]
    widths = dict(enumerate(_column_widths(table, smallest, stacked=True)))
    wrapped = dict.fromkeys(_wide(table, widths), _NARROWEST)
    return _Layout(smallest, sum((widths | wrapped).values()), True, _paragraphs(wrapped), scaled=True)


def _drop_names(table: "Table") -> "Table":
    return replace(table, headings=table.headings[1:], rows=tuple(row[1:] for row in table.rows))


def _fitting(table: "Table") -> _Layout | None:
    """Return the first layout that fits without scaling; None if none does."""
    normal = _SIZES[0]
    for limit in (COLUMN_POINTS, PAGE_POINTS):
        if (width := sum(_column_widths(table, normal, stacked=False))) <= limit:
            return _Layout(normal, width)
    for size in _SIZES:
        for stacked in (False, True):
            if wrapped := _wrapped(table, size, stacked):
                return wrapped
            if (width := sum(_column_widths(table, size, stacked))) <= PAGE_POINTS:
                return _Layout(size, width, stacked)
    return None


def _wrapped(table: "Table", size: _Type, stacked: bool) -> _Layout | None:
    """Return a page-wide layout with wrapped text columns; None if impossible."""
    widths = _column_widths(table, size, stacked)
    excess = sum(widths) - PAGE_POINTS
    wide = _wide(table, widths)
    for count in range(1, len(wide) + 1):
        chosen = {position: widths[position] for position in wide[:count]}
        left = sum(chosen.values()) - excess
        if left >= count * _NARROWEST:
            return _Layout(size, PAGE_POINTS, stacked, _paragraphs(_shares(chosen, left)))
    return None


def _wide(table: "Table", widths: Sequence[float] | Mapping[int, float]) -> list[int]:
    """Return the positions of columns that can be wrapped, widest first."""
    wide = []
    for position, heading in enumerate(table.headings):
        if not heading.numeric and widths[position] > _NARROWEST:
            wide.append(position)
    return sorted(wide, key=lambda position: -widths[position])


def _shares(widths: Mapping[int, float], left: float) -> dict[int, float]:
    """Return each column's share of the remaining width, at least the narrowest.

    There must be left as much as all would have that are as narrow as they can be.
    """
    total = sum(widths.values())
    shares = {position: left * width / total for position, width in widths.items()}
    narrow = {position: _NARROWEST for position, share in shares.items() if share < _NARROWEST}
    if not narrow:
        return shares
    wider = {position: width for position, width in widths.items() if position not in narrow}
    return narrow | (_shares(wider, left - sum(narrow.values())) if wider else {})


def _paragraphs(widths: Mapping[int, float]) -> dict[int, float]:
    return {position: width - 2 * _SEPARATION for position, width in widths.items()}


def _column_widths(table: "Table", size: _Type, stacked: bool) -> list[float]:
    widths = []
    for position, heading in enumerate(table.headings):
        body = _body_width(table, position, size, stacked)
        head = max(map(_text_width(size), _heading_lines(heading, body, size)), default=0.0)
        widths.append(max(body, head) + 2 * _SEPARATION)
    return widths


def _body_width(table: "Table", position: int, size: _Type, stacked: bool) -> float:
    width, cells = _text_width(size), [row[position] for row in table.rows]

    def marked(text: str, cell: "Cell") -> float:
        return width(text) + _MARK * width(table.marks(cell))

    if not table.headings[position].interval:
        return max((marked(cell.marked, cell) for cell in cells), default=0.0)
    values = max((width(cell.marked) for cell in cells), default=0.0)
    intervals = max((marked(cell.interval, cell) for cell in cells), default=0.0)
    if stacked:
        return max(values, intervals)
    return values + _INTERVAL_SEPARATION + intervals


def _text_width(size: _Type) -> Callable[[str], float]:
    return lambda text: size.em * _ems(text)


@cache
def _ems(text: str) -> float:
    return sum(map(_em, text))


@cache
def _em(character: str) -> float:
    """Return a character's width in em of Computer Modern, default m."""
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font

    font = FT2Font(f"{get_data_path()}/fonts/ttf/cmr10.ttf")
    # 10 points at 7200 dots an inch: a thousand dots are an em.
    font.set_size(10, 7200)
    measured_character = character if font.get_char_index(ord(character)) else "m"
    return float(font.load_char(ord(measured_character)).linearHoriAdvance) / 65536 / 1000


def _heading_lines(heading: "Heading", body: float, size: _Type) -> list[str]:
    """Return label and unit as lines about as wide as the column."""
    width = _text_width(size)
    lines: list[str] = []
    label_words = heading.label.split()
    longest = max(map(width, label_words), default=0.0)
    limit = max(body + _HEADING_SLACK, longest)
    for label_word in label_words:
        if lines and width(f"{lines[-1]} {label_word}") <= limit:
            lines[-1] = f"{lines[-1]} {label_word}"
        else:
            lines.append(label_word)
    if heading.unit:
        lines.append(f"({heading.unit})")
    return lines


def _grid(table: "Table", layout: _Layout) -> list[str]:
    shown = _drop_names(table) if layout.has_name_lines else table
    lines = [f"\\begin{{tabular}}{{@{{}}{_columns(shown, layout)}@{{}}}}", r"\toprule"]
    if any(heading.label for heading in shown.headings):
        lines += [_headings(shown, layout), r"\midrule"]
    for (group, row), whole_row in zip(shown.grouped(), table.rows, strict=True):
        if group:
            lines += [r"\addlinespace", _line(shown, f"\\textit{{{_breakable(group)}}}", group, layout)]
        if layout.has_name_lines:
            name, marks = whole_row[0], table.marks(whole_row[0])
            lines.append(_line(shown, _text(name, _breakable(name.text), marks), name.text + marks, layout))
        cells = map(partial(_cell, layout), row, shown.headings, map(table.marks, row), range(len(row)))
        lines.append(" & ".join(cells) + r" \\")
        if layout.stacked:
            # An interval belongs to the value above it, and not to the next row.
            lines.append(r"\addlinespace[2pt]")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _columns(table: "Table", layout: _Layout) -> str:
    columns = ""
    for position, heading in enumerate(table.headings):
        if position in layout.wrapped:
            columns += f">{{\\raggedright\\arraybackslash}}p{{{layout.wrapped[position]:.1f}pt}}"
        elif heading.interval and not layout.stacked:
            columns += f"r@{{\\hspace{{{_INTERVAL_SEPARATION:g}pt}}}}l"
        else:
            columns += "r" if heading.numeric else "l"
    return columns


def _headings(table: "Table", layout: _Layout) -> str:
    labels = []
    for position, heading in enumerate(table.headings):
        body = layout.wrapped.get(position) or _body_width(table, position, layout.type, layout.stacked)
        lines = map(latex_escaped, _heading_lines(heading, body, layout.type))
        side = "r" if heading.numeric else "l"
        label = f"\\shortstack[{side}]{{{_LINE_BREAK.join(lines)}}}"
        span = 1 if layout.stacked else heading.span
        labels.append(f"\\multicolumn{{{span}}}{{{'c' if span > 1 else side}}}{{{label}}}")
    return " & ".join(labels) + r" \\"


def _line(table: "Table", latex: str, text: str, layout: _Layout) -> str:
    """Return a line over all columns; ``text`` is the visible text."""
    span = len(table.headings) if layout.stacked else table.width
    # No separation is outside the first and the last column.
    width = layout.width - 2 * _SEPARATION
    column = "l"
    if _text_width(layout.type)(text) > width:
        column = f">{{\\raggedright\\arraybackslash}}p{{{width:.1f}pt}}"
    return f"\\multicolumn{{{span}}}{{@{{}}{column}@{{}}}}{{{latex}}} \\\\"


def _cell(layout: _Layout, cell: "Cell", heading: "Heading", marks: str, position: int) -> str:
    mark = _superscript(marks)
    value = _breakable(cell.marked) if position in layout.wrapped else latex_escaped(cell.marked)
    if not heading.interval:
        return _text(cell, value, marks)
    # A bracket that opens a cell after \\ would be read as that command's optional argument.
    interval = text_if(cell.interval, f"{{{latex_escaped(cell.interval)}}}")
    if not layout.stacked:
        return f"{value} & {interval}{mark}"
    # The value is on the line of its row, as what stands in one line is.
    if interval:
        return f"\\begin{{tabular}}[t]{{@{{}}r@{{}}}}{value}\\\\{interval}{mark}\\end{{tabular}}"
    return value + mark


def _text(cell: "Cell", latex: str, marks: str) -> str:
    return (f"\\texttt{{{latex}}}" if cell.code else latex) + _superscript(marks)


def _breakable(text: str) -> str:
    """Return a text as LaTeX that may break within names."""
    return _BREAKS.sub(r"\1\\allowbreak{}", latex_escaped(text))


def _superscript(marks: str) -> str:
    return text_if(marks, f"\\textsuperscript{{{marks}}}")


def _notes(table: "Table") -> Iterator[tuple[str, str]]:
    """Yield notes without marks and footnotes with marks."""
    if table.rows:
        yield from (("", latex_escaped(note)) for note in table.notes_without_footnotes)
        yield from ((mark, latex_escaped(str(footnote))) for footnote, mark in table.footnotes.items())
