"""Tables as LaTeX, for ``booktabs``; every text is escaped."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlperf_study.report.tables.table import Cell, Heading, Table

_REPLACEMENTS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\u202f": r"\,",
    "\u00a0": "~",
    "–": "--",
    "—": "---",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "µ": r"\textmu{}",
    "“": "``",
    "”": "''",
    "’": "'",
    "…": r"\dots{}",
}
_SPECIAL = re.compile("|".join(map(re.escape, _REPLACEMENTS)))


def latex_escaped(text: str) -> str:
    """Return ``text`` with every character that LaTeX would read as a command replaced."""
    return _SPECIAL.sub(lambda match: _REPLACEMENTS[match[0]], text)


def latex_table(table: "Table") -> str:
    """Return a floating ``table`` environment; the document must load ``booktabs`` and ``textcomp``."""
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{\\textbf{{{latex_escaped(table.title)}.}} {latex_escaped(table.caption)}}}",
        f"\\label{{tab:{table.name}}}",
        *(_tabular(table) if table.rows else [latex_escaped(table.empty)]),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _tabular(table: "Table") -> list[str]:
    """Return the rows under their headings, and the notes below them."""
    columns, labels = "", []
    for heading in table.headings:
        columns += ("r" if heading.numeric else "l") + (r"@{\,}l" if heading.interval else "")
        label = latex_escaped(heading.text)
        labels.append(f"\\multicolumn{{{heading.span}}}{{c}}{{{label}}}" if heading.numeric else label)
    lines = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(labels) + r" \\", r"\midrule"]
    for group, row in table.grouped():
        if group:
            name = f"\\textit{{{latex_escaped(group)}}}"
            lines += [r"\addlinespace", f"\\multicolumn{{{table.width}}}{{l}}{{{name}}} \\\\"]
        cells = map(_cell, row, table.headings, map(table.marks, row))
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = [latex_escaped(note) for note in table.notes]
    for footnote, mark in table.footnotes.items():
        notes.append(f"\\textsuperscript{{{mark}}}~{latex_escaped(str(footnote))}")
    return [*lines, *(rf"\par\smallskip\footnotesize {note}" for note in notes)]


def _cell(cell: "Cell", heading: "Heading", marks: str) -> str:
    mark = f"\\textsuperscript{{{marks}}}" if marks else ""
    value = f"\\texttt{{{latex_escaped(cell.text)}}}" if cell.code else latex_escaped(cell.text)
    if not heading.interval:
        return value + mark
    # A bracket that opens a cell after \\ would be read as that command's optional argument.
    interval = f"{{{latex_escaped(cell.interval)}}}" if cell.interval else ""
    return f"{value} & {interval}{mark}"
