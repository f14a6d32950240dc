"""Tables as LaTeX, for ``booktabs``: text of ours, escaped, and nothing else."""

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
    caption = f"\\textbf{{{latex_escaped(table.title)}.}} {latex_escaped(table.caption)}"
    body = _tabular(table) if table.rows else [latex_escaped(table.empty)]
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{table.name}}}",
        *body,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _tabular(table: "Table") -> list[str]:
    head = " & ".join(_heading(heading) for heading in table.headings)
    rows = [line for name, row in table.grouped() for line in (*_group(name, table), _row(row, table))]
    notes = [f"\\textsuperscript{{{mark}}}~{latex_escaped(str(note))}" for note, mark in table.notes.items()]
    below = [rf"\par\smallskip\footnotesize {line}" for line in [*map(latex_escaped, table.remarks), *notes]]
    columns = "".join(_column(heading) for heading in table.headings)
    begin = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", head + r" \\", r"\midrule"]
    return [*begin, *rows, r"\bottomrule", r"\end{tabular}", *below]


def _group(name: str, table: "Table") -> list[str]:
    text = f"\\multicolumn{{{table.width}}}{{l}}{{\\textit{{{latex_escaped(name)}}}}} \\\\"
    return [r"\addlinespace", text] if name else []


def _row(row: "tuple[Cell, ...]", table: "Table") -> str:
    return " & ".join(map(_cell, row, table.headings, map(table.marks, row))) + r" \\"


def _column(heading: "Heading") -> str:
    value = "r" if heading.numeric else "l"
    return value + (r"@{\,}l" if heading.interval else "")


def _heading(heading: "Heading") -> str:
    text = latex_escaped(heading.text)
    return f"\\multicolumn{{{heading.span}}}{{c}}{{{text}}}" if heading.numeric else text


def _cell(cell: "Cell", heading: "Heading", marks: str) -> str:
    mark = f"\\textsuperscript{{{marks}}}" if marks else ""
    text = f"\\texttt{{{latex_escaped(cell.text)}}}" if cell.code else latex_escaped(cell.text)
    if not heading.interval:
        return text + mark
    # A bracket that opens a cell after \\ would be read as that command's optional argument.
    interval = f"{{{latex_escaped(cell.interval)}}}" if cell.interval else ""
    return f"{text} & {interval}{mark}"
