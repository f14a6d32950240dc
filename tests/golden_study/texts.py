"""Notebooks, tables and drawings as texts, in which a changed number is a changed line."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bs4 import BeautifulSoup
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Drawing

#: How many digits of a number are compared: the last ones of a sum differ between processors.
DIGITS = 9
#: What is left of a difference of equal numbers, which may be another rest elsewhere.
REST = 1e-15
MISSING = "–"
#: The elements of a page that begin a line of their own.
BLOCKS = ("div", "figcaption", "figure", "h2", "li", "p", "section", "tr", "caption", "summary", "pre")


def number_text(value: Any) -> str:
    """Return a value of a table; a missing one is a dash."""
    if value is None or value is pd.NA:
        return MISSING
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return MISSING
    return f"{0.0 if abs(value) < REST else value:.{DIGITS}g}"


def columns_text(table: pd.DataFrame) -> str:
    """Return a table with a line for each column: the values of its rows, or the one that all have."""
    lines = []
    for name in table:
        values = [number_text(value) for value in table[name].tolist()]
        lines.append(f"{name}: all {values[0]}" if len(set(values)) == 1 else f"{name}: {' | '.join(values)}")
    return "\n".join(lines) + "\n"


def rows_text(table: pd.DataFrame) -> str:
    """Return a table with a line for each row, after one with the names of the columns."""
    rows = [list(table), *table.astype(object).to_numpy().tolist()]
    return "".join(" | ".join(map(number_text, row)) + "\n" for row in rows)


def notebook_text(notebook: Path, study: str) -> str:
    """Return what a notebook of the report says and shows of a study, executed in this process."""
    names: dict[str, Any] = {}
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif "parameters" in cell["metadata"].get("tags", ()):
            names["study"] = study
        else:
            parts.append(html_text(_executed(source, names)))
    return "\n\n".join(filter(None, parts)) + "\n"


def _executed(source: str, names: dict[str, Any]) -> str:
    """Execute a cell; return the HTML of the expression in its last line, if it is one."""
    *statements, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        exec(source, names)
        return ""
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    html: str = eval(compile(ast.Expression(last.value), "cell", "eval"), names)._repr_html_()
    return html


def html_text(html: str) -> str:
    """Return the text of HTML: a line for each block and row of a table, and the alternative text of each picture."""
    page = BeautifulSoup(html, "html.parser")
    for image in page("img"):
        image.replace_with(f"[{image['alt']}]")
    for cell in page(["td", "th"]):
        cell.append(" | ")
    for block in page(BLOCKS):
        block.insert_before("\n")
        block.append("\n")
    lines = (" ".join(line.split()).removesuffix(" |") for line in page.get_text().splitlines())
    return "\n".join(filter(None, lines))


def drawing_text(drawing: Drawing) -> str:
    """Return the numbers and the words of a drawing: a line for each of its lines, bars, groups of dots and texts."""
    return "\n".join(line for panel in drawing.axes for line in _panel_lines(panel)) + "\n"


def _panel_lines(panel: Any) -> Iterator[str]:
    yield f"panel: {panel.get_title()} | {panel.get_xlabel()} | {panel.get_ylabel()}"
    yield f"limits: {_points_text([panel.get_xlim(), panel.get_ylim()])}"
    for axis in (panel.xaxis, panel.yaxis):
        yield f"ticks: {' | '.join(label.get_text() for label in axis.get_ticklabels())}"
    for line in panel.lines:
        yield f"line: {_points_text(line.get_xydata())}"
    for patch in panel.patches:
        yield f"patch: {_points_text(patch.get_path().transformed(patch.get_patch_transform()).vertices)}"
    for collection in panel.collections:
        if isinstance(collection, PathCollection):
            yield f"dots: {_points_text(np.ma.getdata(collection.get_offsets()))}"
        else:
            yield from (f"path: {_points_text(path.vertices)}" for path in collection.get_paths())
    for text in panel.texts:
        yield f"text: {text.get_text()!r}"


def _points_text(points: Any) -> str:
    """Return points with a comma between the coordinates of each."""
    return " ".join(",".join(map(number_text, point)) for point in np.asarray(points, dtype=float).tolist())
