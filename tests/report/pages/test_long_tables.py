"""A table of hundreds of rows on a page, in a browser: some rows at once, all when asked for, from a file beside it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from dlperf_study.core.paths import StudyPaths
from dlperf_study.report.pages import SUMMARY, Masthead, page_html
from dlperf_study.report.tables.html import FIRST_ROWS, MOST_ROWS
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import MOST_AT_AN_END, noticeable

ROWS = 150
#: The row that the address of a page names, and one with a footnote of its own.
NAMED, REMARKED = 120, 77


def rows() -> Iterator[tuple[Cell, ...]]:
    for number in range(ROWS):
        remark = "seen nowhere else" if number == REMARKED else "" if number % 2 else "as many others"
        yield (
            Cell(f"batch {number}", anchor=f"run-{number}"),
            Cell(f"{(number * 37) % ROWS}", "", remark),
        )


def written_page(folder: Path, table: Table) -> Path:
    """Write a page with one table as the report does, and return its file."""
    paths = StudyPaths(folder / "outputs")
    html = table.save(paths)._repr_html_()
    cell = new_code_cell("table", execution_count=1)
    cell.outputs = [new_output("execute_result", {"text/html": html}, execution_count=1)]
    notebook = folder / "page.ipynb"
    nbformat.write(new_notebook(cells=[cell]), notebook)
    shutil.copytree(paths.tables, folder / "tables")
    page = folder / "index.html"
    page.write_text(page_html(notebook, SUMMARY, [SUMMARY], Masthead("many", "Many", False)))
    return page


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """Return a page with the table, opened from a disk and without a network, and its address."""
    headings = (Heading("Batch"), Heading("Rate", numeric=True, interval=True))
    page = written_page(tmp_path, Table("many", "Many", "", headings, tuple(rows()), first=(0, REMARKED, ROWS - 1)))
    with chromium.new_context(offline=True) as context:
        opened = context.new_page()
        opened.goto(page.as_uri())
        yield opened, page.as_uri()


def shown(page: Any) -> list[str]:
    return list(page.eval_on_selector_all("tbody tr:not([hidden]) td:first-child", "all => all.map(e => e.innerText)"))


def test_a_reader_sees_what_is_noticeable_and_all_rows_when_asked_for(opened):
    page, _ = opened
    assert shown(page) == ["batch 0", f"batch {REMARKED}", f"batch {ROWS - 1}"]
    assert "3 of 150 rows are shown" in page.inner_text(".further")
    assert page.inner_text(".footnotes").count("others") == 1
    page.click("text=Show and search all rows")
    page.wait_for_selector("input[type=search]")
    assert shown(page) == [f"batch {number}" for number in range(ROWS)]
    assert page.locator(".further").count() == 0
    assert "seen nowhere else" in page.inner_text(".footnotes")


def test_all_rows_are_sorted_and_searched(opened):
    page, _ = opened
    page.click("th:has-text('Rate')")
    page.click("text=Show and search all rows")
    page.wait_for_selector("input[type=search]")
    page.click("th:has-text('Rate')")
    throughputs = page.eval_on_selector_all("tbody td.number", "all => all.map(e => parseFloat(e.innerText))")
    assert throughputs == sorted(range(ROWS))
    page.fill("input[type=search]", "batch 12")
    # In its batch or in its throughput.
    expected = [f"batch {number}" for number in range(ROWS) if "12" in f"{number} {number * 37 % ROWS}"]
    assert sorted(shown(page)) == sorted(expected)


def test_an_address_of_a_row_that_is_not_shown_leads_to_it(opened):
    page, address = opened
    page.goto("about:blank")
    page.goto(f"{address}#run-{NAMED}")
    page.wait_for_function(f"document.getElementById('run-{NAMED}')?.getBoundingClientRect().top >= 0")
    top, height = page.evaluate(f"[document.getElementById('run-{NAMED}').getBoundingClientRect().top, innerHeight]")
    assert 0 <= top < height


def test_the_rows_that_are_noticed_are_at_the_ends_and_those_with_a_remark():
    values = [SimpleNamespace(throughput=(number * 37) % ROWS) for number in range(ROWS)]
    noticed = noticeable(values, "throughput", list(rows()))
    ends = {*range(MOST_AT_AN_END), *range(ROWS - MOST_AT_AN_END, ROWS)}
    assert {values[position].throughput for position in noticed} - {values[REMARKED].throughput} == ends - {
        values[REMARKED].throughput
    }
    assert REMARKED in noticed
    assert list(noticed) == sorted(noticed)


@pytest.mark.parametrize(("count", "printed"), [(MOST_ROWS, MOST_ROWS), (MOST_ROWS + 1, FIRST_ROWS)])
def test_only_a_long_table_is_shortened(tmp_path, count, printed):
    table = Table("t", "T", "", (Heading("Batch"), Heading("Rate", interval=True)), tuple(rows())[:count])
    assert table.save(StudyPaths(tmp_path))._repr_html_().count("<tr>") == printed + 1
    assert table._repr_html_().count("<tr>") == count + 1
    assert (StudyPaths(tmp_path).tables / "t.js").exists() == (count > MOST_ROWS)
