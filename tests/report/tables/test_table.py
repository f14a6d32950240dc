import re
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.paths import StudyPaths
from dlperf_study.report.tables.latex import latex_escaped, latex_table
from dlperf_study.report.tables.table import Cell, Heading, Link, Table


@pytest.fixture
def table() -> Table:
    headings = (Heading("Model_name"), Heading("Rate", "samples/s", numeric=True, interval=True))
    rows = ((Cell("a_b"), Cell("1.0", "[0.9, 1.1]")), (Cell("c & <d>"), Cell.missing("100 % lost")))
    return Table("rates", "Rates", "Of $5 each", headings, rows, notes=("Said once.",), groups=("one", "one"))


def test_each_distinct_note_has_one_mark() -> None:
    rows = ((Cell.missing("x"), Cell.missing("y")), (Cell.missing("x"), Cell("1")))
    assert Table("t", "T", "", (Heading("A"), Heading("B")), rows).footnotes == {"x": "a", "y": "b"}


def test_many_notes_all_have_a_mark() -> None:
    rows = tuple((Cell.missing(f"reason {number}"),) for number in range(800))
    marks = Table("t", "T", "", (Heading("A"),), rows).footnotes
    assert len(marks) == len(set(marks.values())) == 800


def test_a_cell_may_have_several_notes_and_one_may_lead_elsewhere() -> None:
    links = (Link("audit & more", "audit.html#audit-1"), Link("no page", ""))
    table = Table(
        "t", "T", "", (Heading("A"),), ((Cell("1", footnote="x", further=links),), (Cell("2", anchor="here"),))
    )
    html = table._repr_html_()
    assert "<td>1<sup>a,b,c</sup></td>" in html
    assert '<sup>b</sup>&nbsp;<a href="audit.html#audit-1">audit &amp; more</a>' in html
    assert "<sup>c</sup>&nbsp;no page" in html
    assert '<td id="here">2</td>' in html
    assert r"1\textsuperscript{a,b,c}" in latex_table(table)
    assert r"\item[b] audit \& more" in latex_table(table)


def test_html_escapes_and_explains_the_dash(table: Table) -> None:
    html = table._repr_html_()
    assert "c &amp; &lt;d&gt;" in html
    assert '<td class="number">–</td><td class="interval"><sup>a</sup></td>' in html
    assert "<sup>a</sup>&nbsp;100 % lost" in html


def test_intervals_and_anchors_are_escaped_too() -> None:
    heading = Heading("Rate", numeric=True, interval=True)
    html = Table("t", "T", "", (heading,), ((Cell("1", "<b>", anchor='"><b>'),),))._repr_html_()
    assert '<td class="interval">&lt;b&gt;</td>' in html
    assert 'id="&quot;&gt;&lt;b&gt;"' in html


def test_the_name_of_a_file_is_set_as_code(table: Table) -> None:
    named = replace(table, rows=((Cell("1n1g/r50_1.log", code=True), Cell("1")),), groups=())
    assert "<td><code>1n1g/r50_1.log</code></td>" in named._repr_html_()
    assert r"\texttt{1n1g/r50\_1.log}" in latex_table(named)


def test_a_definition_that_is_a_footnote_is_no_note_too() -> None:
    table = Table(
        "t", "T", "", (Heading("A"),), ((Cell.missing("A: what it is"),),), notes=("A: what it is", "B: else")
    )
    for text in (table._repr_html_(), latex_table(table)):
        assert (text.count("A: what it is"), text.count("B: else")) == (1, 1)


def test_a_group_is_named_once(table: Table) -> None:
    assert table._repr_html_().count(">one</th>") == 1


def test_an_empty_table_says_so() -> None:
    assert "None at all." in Table("t", "T", "", (Heading("A"),), (), empty="None at all.")._repr_html_()


def test_saved_as_html_and_latex(table: Table, tmp_path: Path) -> None:
    paths = StudyPaths(tmp_path)
    assert table.save(paths) == replace(table, is_saved=True)
    assert sorted(path.name for path in paths.tables.iterdir()) == ["rates.csv", "rates.html", "rates.tex"]


def test_latex_rows_have_as_many_cells_as_columns(table: Table, tmp_path: Path) -> None:
    lines = (table.save(StudyPaths(tmp_path)).name and (tmp_path / "tables/rates.tex").read_text()).splitlines()
    body = [line for line in lines if line.startswith(("a", "c "))]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in body] == [2, 2]


def test_latex_braces_and_environments_are_balanced(table: Table, tmp_path: Path) -> None:
    table.save(StudyPaths(tmp_path))
    text = (tmp_path / "tables/rates.tex").read_text()
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    opened: list[str] = []
    for command, name in re.findall(r"\\(begin|end)\{(\w+\*?)}", text):
        if command == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("a_b", r"a\_b"), ("50 %", r"50 \%"), ("\\", r"\textbackslash{}"), ("1\u202f000", r"1\,000"), ("{$}", r"\{\$\}")],
)
def test_latex_reads_text_as_text(text: str, escaped: str) -> None:
    assert latex_escaped(text) == escaped


def test_a_heading_leads_to_the_note_that_defines_its_column() -> None:
    headings = (Heading("Rate", numeric=True), Heading("Rate of ranks", numeric=True), Heading("Name"))
    notes = ("Rate: samples per second.", "Rate of ranks: their sum.", "Names are short.")
    page = Table("t", "T", "", headings, ((Cell("1"), Cell("2"), Cell("a")),), notes)._repr_html_()
    links = re.findall(r'<th[^>]*>([^<]+)<a class="definition" href="#([^"]+)"', page)
    definitions = dict(re.findall(r'<span id="([^"]+)">([^<]+)</span>', page))
    assert [(label, definitions[anchor]) for label, anchor in links] == [
        ("Rate", notes[0]),
        ("Rate of ranks", notes[1]),
    ]


def test_what_is_between_backticks_is_code() -> None:
    commands = Table("a", "A", "", (Heading("Self-test"),), ((Cell("`make selftest` runs <it>"),),))
    assert "<td><code>make selftest</code> runs &lt;it&gt;</td>" in commands.html()
