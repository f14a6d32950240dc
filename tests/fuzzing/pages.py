"""Texts of users on pages: no name, title, message or value becomes an element or an attribute of a page."""

import tempfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import atheris
import nbformat

with atheris.instrument_imports(include=["dlperf_study.report"]):
    from dlperf_study.report.pages import SUMMARY, Masthead, page_html
    from dlperf_study.report.tables.table import Cell, Heading, Link, Table

from tests.fuzzing.fuzzer import fuzz

#: How long a text is at most, and of how many tables one is put into a whole page.
LONGEST, EVERY = 60, 32
SEEDS = ("<script>x()</script>", "\"' onload=x() '\"", "`a` {{ 7 * 7 }} ]]> --> &lt;", "a/b/c/d", "](javascript:x())")


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attributes)))

    def without_code(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return them without what backticks and paths in a text may become."""
        return [element for element in self.seen if element[0] not in ("code", "wbr")]


def table(text: str) -> Table:
    """Return a saved table with a text in each place that a user's text can reach."""
    cells = (
        Cell(text, text, footnote=text, anchor="anchor", evidence="evidence"),
        Cell(text, code=True, further=(Link(text, "page.html"),)),
    )
    headings = (Heading(text, text, numeric=True, interval=True), Heading(text or "x"))
    return Table("name", text, text, headings, (cells,), (text,), text, (text or "x",), is_saved=True)


class Target:
    """Puts one text into a table, and now and then into a whole page, and compares their elements with those of "x"."""

    def __init__(self, folder: Path) -> None:
        self._notebook = folder / "page.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Page")]), self._notebook)
        self._count = 0

    def __call__(self, data: bytes) -> None:
        text = atheris.FuzzedDataProvider(data).ConsumeUnicodeNoSurrogates(LONGEST)
        for rows in ({}, {"rows": ()}):
            expected = self._names("x", rows) | self._names("", rows)
            assert self._names(text, rows) <= expected, self._names(text, rows) - expected
        self._count += 1
        if self._count % EVERY == 0:
            assert self._page(text) == self._page("x")

    def _names(self, text: str, rows: dict[str, tuple[()]]) -> set[str]:
        """Return the names of the elements and attributes of a table with this text."""
        printed = replace(table(text), **rows)
        elements = Elements(printed.html() + printed._repr_html_())
        attributes = {f"@{name}" for _, names in elements.seen for name in names}
        return attributes | {tag for tag, _ in elements.without_code()}

    def _page(self, text: str) -> list[tuple[str, tuple[str, ...]]]:
        pages = [SUMMARY, replace(SUMMARY, title=text or "x")]
        return Elements(page_html(self._notebook, SUMMARY, pages, Masthead("study", text or "x", True))).without_code()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        fuzz(Target(Path(name)), {f"seed-{number}": seed.encode() for number, seed in enumerate(SEEDS)})
