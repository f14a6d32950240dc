import csv
import io
import re
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from dlperf_study.core.paths import REPORT_VARIABLE, StudyPaths
from dlperf_study.report import figures
from dlperf_study.report.formatting import latex_escaped
from dlperf_study.report.section import Section
from dlperf_study.report.tables.html import html_table
from dlperf_study.report.tables.latex import latex_table
from dlperf_study.report.tables.table import Cell, Heading, Link, Table


@pytest.fixture
def table() -> Table:
    headings = (Heading("Model_name"), Heading("Rate", "samples/s", numeric=True, interval=True))
    rows = ((Cell("a_b"), Cell("1.0", "[0.9, 1.1]")), (Cell("c & <d>"), Cell.missing("100 % lost")))
    return Table("rates", "Rates", "Of $5 each", headings, rows, notes=("Said once.",), groups=("one", "one"))


def test_each_distinct_note_has_one_mark():
    rows = ((Cell.missing("x"), Cell.missing("y")), (Cell.missing("x"), Cell("1")))
    assert Table("t", "T", "", (Heading("A"), Heading("B")), rows).footnotes == {"x": "a", "y": "b"}
    rows = tuple((Cell.missing(f"reason {number}"),) for number in range(800))
    marks = Table("t", "T", "", (Heading("A"),), rows).footnotes
    assert len(marks) == len(set(marks.values())) == 800


@pytest.mark.usefixtures("on_page")
def test_a_cell_may_have_several_notes_and_one_may_lead_elsewhere():
    links = (Link("audit & more", "audit.html#audit-1"), Link("no page", ""))
    rows = ((Cell("1", footnote="x", further=links),), (Cell("2", anchor="here"),))
    table = Table("t", "T", "", HEADINGS, rows)
    html = table._repr_html_()
    assert '<td>1<sup title="x\naudit &amp; more\nno page">a,b,c</sup></td>' in html
    assert '<sup>b</sup>&nbsp;<a href="audit.html#audit-1">audit &amp; more</a>' in html
    assert "<sup>c</sup>&nbsp;no page" in html
    assert '<td id="here">2</td>' in html
    assert r"1\textsuperscript{a,b,c}" in latex_table(table, "example")
    assert r"\item[b] audit \& more" in latex_table(table, "example")


def test_html_escapes_cells_intervals_and_anchors_explains_the_dash_and_names_a_group_once(table):
    html = table._repr_html_()
    assert "c &amp; &lt;d&gt;" in html
    assert '<td class="number">–</td><td class="interval"><sup title="100 % lost">a</sup></td>' in html
    assert "<sup>a</sup>&nbsp;100 % lost" in html
    assert html.count(">one</th>") == 1
    heading = Heading("Rate", numeric=True, interval=True)
    html = Table("t", "T", "", (heading,), ((Cell("1", "<b>", anchor='"><b>'),),))._repr_html_()
    assert '<td class="interval">&lt;b&gt;</td>' in html
    assert 'id="&quot;&gt;&lt;b&gt;"' in html


def test_decimal_points_are_below_each_other_and_nothing_is_added_to_a_number():
    heading = Heading("Rate", numeric=True, interval=True)
    texts = ("0.44", "0.7", "12", "1\u202f500.5", "–", "10 : 3")
    rows = tuple((Cell(text, "[0, 1]"),) for text in texts)
    page = BeautifulSoup(Table("t", "T", "", (heading,), rows)._repr_html_(), "html.parser")
    cells = page.select("td.number")
    assert tuple(cell.get_text() for cell in cells) == texts
    padded = [cell.get_text() + "".join(pad["data-pad"] for pad in cell.select(".pad")) for cell in cells[:4]]
    assert padded == ["0.44", "0.70", "12.00", "1\u202f500.50"]
    assert not cells[4].select(".pad")


def test_more_than_two_notes_are_folded_and_each_letter_shows_its_own():
    rows = tuple((Cell.missing(f"reason {number}"),) for number in range(4))
    for count, is_open in ((2, True), (4, False)):
        page = BeautifulSoup(Table("t", "T", "", (Heading("A"),), rows[:count])._repr_html_(), "html.parser")
        [notes] = page.select("details.footnotes")
        assert notes.has_attr("open") == is_open
        assert [item.get_text() for item in notes.select("li")] == [
            f"{letter}\xa0reason {number}" for number, letter in zip(range(count), "abcd", strict=False)
        ]
        assert [mark["title"] for mark in page.select("td sup")] == [f"reason {number}" for number in range(count)]


def test_files_and_commands_are_set_as_code(table):
    named = replace(table, rows=((Cell("1n1g/r50_1.log", code=True), Cell("1")),), groups=())
    assert "<td><code>1n1g/r50_1.log</code></td>" in named._repr_html_()
    assert r"\texttt{1n1g/r50\_1.log}" in latex_table(named, "example")
    commands = Table("a", "A", "", (Heading("Self-test"),), ((Cell("`make selftest` runs <it>"),),))
    assert "<td><code>make selftest</code> runs &lt;it&gt;</td>" in html_table(commands)


def test_a_definition_that_is_a_footnote_is_no_note_too():
    rows = ((Cell.missing("A: what it is"),),)
    table = Table("t", "T", "", HEADINGS, rows, notes=("A: what it is", "B: else"))
    # Where a letter is pointed at, its note is shown once more.
    for text in (table._repr_html_().replace('title="A: what it is"', ""), latex_table(table, "example")):
        assert (text.count("A: what it is"), text.count("B: else")) == (1, 1)


def test_saved_as_html_and_latex(table, tmp_path):
    paths = StudyPaths(tmp_path)
    assert table.save(paths) == replace(table, is_saved=True)
    assert sorted(path.name for path in paths.tables.iterdir()) == ["rates.csv", "rates.html", "rates.tex"]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("a_b", r"a\_b"), ("50 %", r"50\,\%"), ("\\", r"\textbackslash{}"), ("1\u202f000", r"1\,000"), ("{$}", r"\{\$\}")],
)
def test_latex_reads_text_as_text(text, escaped):
    assert latex_escaped(text) == escaped


def test_a_heading_leads_to_the_note_that_defines_its_column():
    headings = (Heading("Rate", numeric=True), Heading("Rate of ranks", numeric=True), Heading("Name"))
    notes = ("Rate: samples per second.", "Rate of ranks: their sum.", "Names are short.")
    page = Table("t", "T", "", headings, ((Cell("1"), Cell("2"), Cell("a")),), notes)._repr_html_()
    links = re.findall(r'<th[^>]*>([^<]+)<a class="definition" href="#([^"]+)"', page)
    definitions = dict(re.findall(r'<span id="([^"]+)">([^<]+)</span>', page))
    defined = {label: definitions[anchor] for label, anchor in links}
    assert defined == {"Rate": notes[0], "Rate of ranks": notes[1]}


HEADINGS = (Heading("A"),)
FULL = Table("full", "Full", "All of it.", HEADINGS, ((Cell("1"),),), notes=("A: a letter.",), page_caption="A part.")
EMPTY = Table("empty", "Empty", "", HEADINGS, (), empty="Nothing was measured.")


@pytest.mark.usefixtures("on_page")
def test_an_empty_table_is_not_shown_and_its_file_is_written(tmp_path):
    paths = StudyPaths(tmp_path)
    shown = Section.of("Both", FULL, [EMPTY]).save(paths)._repr_html_()
    assert '<h2 id="both">Both<a class="anchor-link" href="#both"' in shown
    assert EMPTY.empty not in shown
    assert EMPTY.empty in (paths.tables / "empty.html").read_text()
    assert EMPTY.empty in EMPTY._repr_html_()
    assert Section.of("Nothing", EMPTY)._repr_html_() == ""


def test_a_notebook_that_a_person_executes_writes_no_file_and_leads_to_no_page(tmp_path, monkeypatch):
    paths, linked = StudyPaths(tmp_path), Cell("1", evidence="run-1", further=(Link("audit", "audit.html#audit-1"),))
    section = Section.of("Both", replace(FULL, rows=((linked,),)))
    by_hand = section.save(paths)._repr_html_()
    assert "href" not in by_hand.replace('href="#', "")
    assert "<style>" in by_hand
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv(REPORT_VARIABLE, str(tmp_path))
    on_page = section.save(paths)._repr_html_()
    assert 'href="runs.html#run-1"' in on_page
    assert "<style>" not in on_page


def test_a_page_shows_its_part_of_the_caption_and_the_file_all(tmp_path):
    shown = FULL._repr_html_()
    assert "A part." in shown
    assert "All of it." not in shown
    assert "<details" in shown
    file = (FULL.save(StudyPaths(tmp_path)) and tmp_path / "tables/full.html").read_text()
    assert "All of it." in file
    assert "<details" not in file


def test_figures_are_told_in_words(mixed):
    [figure] = figures.scaling(mixed)
    assert "2 devices: throughput " in figure.alt
    assert "speedup 1.5" in figure.alt
    assert figure.alt in figure._repr_html_()
    assert "Constructed CPU" not in figure._repr_html_().partition("<figcaption>")[2]
    assert "Constructed CPU" in figure.svg().decode()
    [figure] = figures.drift(mixed)
    assert figure.alt.count("change of throughput") == 3


def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay_numbers():
    cells = ("=1+1", "+A1", "-1+cmd", "@SUM(A1)", "\tx", "-", "-5.2 %", "+3", "-1.5e-3 samples/s", "a=b")
    table = Table("t", "T", "", (Heading("=A"),), tuple((Cell(text),) for text in cells))
    saved = [row[0] for row in csv.reader(io.StringIO(table.csv()))]
    assert saved == ["'=A", "'=1+1", "'+A1", "'-1+cmd", "'@SUM(A1)", "'\tx", *cells[5:]]
