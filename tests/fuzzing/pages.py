"""Texts of users on pages: no name, title, message or value becomes an element or an attribute of a page.

A page is that of an executed notebook, with all that its cells show: tables, figures, sentences, and what was printed.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import atheris
import nbformat
from matplotlib.figure import Figure as Drawing
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

with atheris.instrument_imports(include=["dlperf_study.report", "dlperf_study.api.studies"]):
    from dlperf_study.api.studies import Studies, StudySummary
    from dlperf_study.findings.selftest import SelftestPower
    from dlperf_study.report.configuration_page import Folded
    from dlperf_study.report.figures.figure import Figure
    from dlperf_study.report.figures.style import COLUMN, PAGE, publication_style
    from dlperf_study.report.page_findings import PageFindings
    from dlperf_study.report.pages import SUMMARY, Masthead, page_html
    from dlperf_study.report.section import Section
    from dlperf_study.report.tables.html import html_table
    from dlperf_study.report.tables.table import Cell, Heading, Link, Table

from tests.fuzzing.fuzzer import fuzz_in_folder

#: Of how many texts one is put into a whole page, how many parts one has at most, and how long an input is.
EVERY, MOST_PARTS, LONGEST_BYTES = 32, 8, 64
#: What ends or begins something in HTML, Markdown, JSON, templates, drawings, or the output of a terminal.
FRAGMENTS = (
    *("<", ">", '"', "'", "&", "`", "/", "\\", "\n", "\0", "$", "[", "](", "{{", "}}", "{% raw %}", "\x1b[31m", "\x02"),
    *("<script>x()</script>", "</script>", "</style>", "</pre>", "</svg>", "<img src=x onerror=x()>", "<!--", "-->"),
    *("]]>", "<![CDATA[", "&lt;script&gt;", "&#60;", 'src="data:image/svg+xml,', "javascript:x()", " onload=x() "),
    *("a/b/c/d", "x: ", "&quot;", "%3Cscript%3E"),
)
#: Elements without a meaning of their own: what backticks and paths become, what is bold, colours of a terminal and of
#: code.
DECORATION = ("code", "wbr", "b", "span")
#: What these have as attributes.
HARMLESS = {"class", "style", "id"}


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attributes)))

    def without_decoration(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return them without those that a text may have; these must have harmless attributes."""
        decorating = [element for element in self.seen if element[0] in DECORATION]
        assert {name for _, names in decorating for name in names} <= HARMLESS, decorating
        return [element for element in self.seen if element[0] not in DECORATION]


def table(text: str) -> Table:
    """Return a saved table with a text in each place that a user's text can reach."""
    cells = (
        Cell(text, text, footnote=text, anchor="anchor", evidence="evidence"),
        Cell(text, code=True, further=(Link(text, "page.html"),)),
    )
    headings = (Heading(text, text, numeric=True, interval=True), Heading(text or "x"))
    return Table("name", text, text, headings, (cells,), (text,), text, (text or "x",), is_saved=True)


def figure(text: str) -> Figure:
    """Return a figure with a text wherever one can be, drawn without a layout of its own, which takes long."""
    with publication_style():
        drawing = Drawing(figsize=(2, 1))
        drawing.text(0, 0, text)
    drawings = {width: drawing for width in (PAGE, COLUMN)}
    return Figure("name", text, text, None, text, text, text, is_saved=True, _drawings=drawings)


def shown(text: str) -> Iterator[Any]:
    """Yield what the cells of notebooks show, with a text wherever one can be."""
    summary = StudySummary(text, text, None, 1, 1, Path(text.replace("\0", "")) / "index.html")
    yield from (table(text), replace(table(text), rows=()), Figure("none", text, text, None, text))
    yield from (
        PageFindings((SelftestPower(text),), conditions=text),
        Section(text, (table(text),)),
        Studies([summary]),
    )
    yield from (Folded({text: text}), Folded({}, text))


def executed(text: str) -> nbformat.NotebookNode:
    """Return a notebook whose cells showed and printed a text."""
    parameters = new_code_cell(f"study = {text!r}", execution_count=1, metadata={"tags": ["injected-parameters"]})
    cells = [new_markdown_cell("# Page"), parameters]
    for content in (figure(text), *shown(text)):
        # What a notebook keeps as the other form of an output is not shown.
        data = {"text/html": content._repr_html_(), "text/plain": text}
        outputs = [new_output("execute_result", data, execution_count=1)]
        cells.append(new_code_cell("x", execution_count=1, outputs=outputs))
    printed = [new_output("stream", name=name, text=text) for name in ("stdout", "stderr")]
    printed.append(new_output("display_data", {"text/plain": text}))
    printed.append(new_output("error", ename=text, evalue=text, traceback=[text]))
    return new_notebook(cells=[*cells, new_code_cell(repr(text), execution_count=2, outputs=printed)])


class Target:
    """Puts one text wherever a user's text can be, and compares the elements there with those of another text."""

    def __init__(self, folder: Path) -> None:
        self._notebook = folder / "page.ipynb"
        self._names_of_any = self._names(("x", "", "y"))
        self._page_of_x = self._page("x")

    def __call__(self, data: bytes) -> None:
        choice = atheris.FuzzedDataProvider(data)
        is_for_page = choice.ConsumeIntInRange(0, EVERY - 1) == 0
        text = read_text_file(choice)
        names = self._names((text,))
        assert names <= self._names_of_any, (text, names - self._names_of_any)
        if is_for_page:
            assert self._page(text or "x") == self._page_of_x, text

    def _names(self, texts: Iterable[str]) -> set[str]:
        """Return the names of the elements and attributes of all that is shown of some texts."""
        names: set[str] = set()
        for text in texts:
            printed = html_table(table(text)) + "".join(content._repr_html_() for content in shown(text))
            elements = Elements(printed)
            names |= {f"@{name}" for _, attributes in elements.seen for name in attributes}
            names |= {tag for tag, _ in elements.without_decoration()}
        return names

    def _page(self, text: str) -> list[tuple[str, tuple[str, ...]]]:
        nbformat.write(executed(text), self._notebook)
        pages = [SUMMARY, replace(SUMMARY, title=text)]
        html = page_html(self._notebook, SUMMARY, pages, Masthead(text, text, True))
        return Elements(html).without_decoration()


def read_text_file(choice: atheris.FuzzedDataProvider) -> str:
    """Return a text of fragments that mean something to some program on the way to a page, and of any characters."""
    parts = []
    for _ in range(choice.ConsumeIntInRange(0, MOST_PARTS)):
        index = choice.ConsumeIntInRange(0, len(FRAGMENTS))
        is_free = index == len(FRAGMENTS)
        parts.append(choice.ConsumeUnicodeNoSurrogates(MOST_PARTS) if is_free else FRAGMENTS[index])
    return "".join(parts)


if __name__ == "__main__":
    # Fonts have no character for most.
    warnings.simplefilter("ignore")
    # The longest input from the start: each byte of it is a choice.
    fuzz_in_folder(Target, {}, "-len_control=0", f"-max_len={LONGEST_BYTES}")
