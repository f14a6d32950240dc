"""A report built as a user builds it, opened as a reader opens it: from a disk, in a browser, without a network."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_notebook, new_output

from dlperf_study.core import resources
from dlperf_study.core.errors import DlperfStudyError, RecordError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.dataset.inputs import is_report_current
from dlperf_study.findings.pages import MAX_FINDINGS
from dlperf_study.report import pages
from dlperf_study.study.plan import Plan
from dlperf_study.study.study import SECTIONS
from tests.evidence_factory import write_study
from tests.report.conftest import mixed_entries, write_titled
from tests.requirements import need

PAGES = ("index.html", *(f"{question}.html" for question in SECTIONS), "history.html", "runs.html")
CAPTION_LINES = 2
WITHOUT_FIGURES = {"runs.html", "resources.html", "audit.html", "published.html", "prediction.html"}
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyPaths]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OUTPUTS_VARIABLE, str(tmp_path_factory.mktemp("outputs")))
        paths = StudyPaths.of("example")
        plan = write_titled(paths, mixed_entries()).plan
        write_study(paths.earlier_measurement(1), mixed_entries()[:2])
        plan.changed(sections=SECTIONS, quick=True).write(paths.plan_file)
        for former in (paths.tables / "former-name.tex", paths.figures / "former-name.svg"):
            former.parent.mkdir()
            former.touch()
        assert pages.build("example") == paths.report_page
        yield paths


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A browser page without a network; it collects what goes wrong."""
    with chromium.new_context(offline=True) as context:
        yield _watched_page(context)


@pytest.fixture(scope="module", params=PAGES)
def opened(chromium: Any, built: StudyPaths, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each page of the report, opened once in a window of a usual size. Look, don't touch."""
    with chromium.new_context(offline=True, viewport={"width": 1280, "height": 900}) as context:
        page = _watched_page(context)
        page.goto((built.report / request.param).as_uri())
        yield page


def _watched_page(context: Any) -> Any:
    page = context.new_page()
    page.troubles = []
    page.on("console", lambda message: page.troubles.append(message.text))
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("requestfailed", lambda request: page.troubles.append(request.url))
    page.on("request", lambda request: _note_foreign(page.troubles, request.url))
    return page


def _note_foreign(troubles: list[str], url: str) -> None:
    if not url.startswith(("file:", "data:")):
        troubles.append(url)


def html_of(paths: StudyPaths, name: str) -> BeautifulSoup:
    return BeautifulSoup((paths.report / name).read_text(), "html.parser")


def test_every_page_and_file_is_there_the_report_is_current_and_nothing_of_a_former_version_stays(built):
    assert set(PAGES) <= {path.name for path in built.report.iterdir()}
    assert {path.suffix for path in built.figures.iterdir()} == {".svg", ".pdf"}
    assert {path.suffix for path in built.tables.iterdir()} == {".html", ".tex", ".csv"}
    assert not built.report_unfinished.exists()
    assert not built.report_previous.exists()
    assert is_report_current(built)
    assert list(built.folder.rglob("former-name.*")) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_nothing_outside_itself(built, name):
    html = (built.report / name).read_text()
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html
    assert html.count("<script") == html.count("<script>") == 1
    assert str(Path.home()) not in html
    assert str(built.folder) not in html


def test_every_page_says_quick_fits_the_window_and_opens_offline(opened):
    sizes = opened.eval_on_selector_all("img", "all => all.map(i => i.complete && i.naturalWidth * i.clientHeight)")
    assert opened.troubles == []
    assert bool(sizes) == (Path(opened.url).name not in WITHOUT_FIGURES)
    assert all(sizes)
    overflow = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert opened.eval_on_selector_all("html, .scroll", overflow) == 0
    assert opened.locator("header .quick").inner_text() == "quick: not for publication"


def test_a_page_has_its_figure_its_table_its_findings_and_its_method(opened):
    tops = {}
    has_long_table = Path(opened.url).name in ("audit.html", "prediction.html", "resources.html", "runs.html")
    main = (".findings", "figure") if has_long_table else ("figure", ".findings")
    for part in ("h1", *main, "h2:text-is('Method')"):
        tops[part] = opened.locator(part).first.evaluate("e => e.getBoundingClientRect().top")
    assert sorted(tops, key=lambda part: tops[part]) == list(tops)
    assert 1 <= opened.locator(".findings li").count() <= MAX_FINDINGS


def test_a_caption_has_two_lines_and_no_heading_is_above_nothing(opened):
    lines = "all => all.map(e => [e.innerText, e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)])"
    captions = opened.eval_on_selector_all("figcaption", lines)
    assert [text for text, count in captions if round(count) > CAPTION_LINES] == []
    following = "all => all.map(e => e.parentElement.nextElementSibling || e.nextElementSibling).map(e => e !== null)"
    assert all(opened.eval_on_selector_all("h2", following))


def test_code_is_hidden_until_it_is_asked_for(built, page):
    page.goto(built.report_page.as_uri())
    code = page.locator(".code").first
    assert not code.is_visible()
    page.get_by_text("code", exact=True).click()
    assert code.is_visible()
    page.get_by_text("code", exact=True).click()
    assert not code.is_visible()


def test_the_first_page_begins_with_what_the_study_is_and_when_it_was_measured(built):
    first, other = (html_of(built, name) for name in PAGES[:2])
    assert [heading.get_text() for heading in first.find_all("h1")] == ["Constructed & shown"]
    paragraphs = [paragraph.get_text() for paragraph in first.select(".title p")]
    about = Plan.read(built.plan_file).about
    assert about.startswith(paragraphs[0].removeprefix("The full study: "))
    assert re.match(r"Measured in .* \(2\d{3}-\d\d-\d\d", paragraphs[-1])
    assert "Summary" not in [heading.get_text() for heading in first.find_all(["h1", "h2"])]
    assert (other.select(".title"), other.select_one("header .study").get_text()) == ([], "Constructed & shown")


def test_all_conditions_are_on_the_first_page_and_the_others_lead_there(built):
    pages = ("index.html", "scaling.html", "quality.html")
    whole, *short = (html_of(built, name).select_one(".conditions") for name in pages)
    assert (whole["id"], whole.find("a")) == ("conditions", None)
    for line in short:
        assert line.find("a")["href"] == "index.html#conditions"
        assert len(line.get_text()) < 0.5 * len(whole.get_text())


def test_drawings_are_not_escaped_and_all_else_is(built):
    page = built.report_page.read_text()
    drawings = re.findall(r'src(?:set)?="(data:image/svg[^"]*)"', page)
    assert len(drawings) == 2 * page.count("<picture>") > 0
    assert all("<svg" in drawing and "&lt;" not in drawing for drawing in drawings)
    escaped = '<p title="&lt;b&gt;">&lt;b&gt;</p>'
    assert pages.unescape_drawings(escaped) == escaped


@pytest.mark.parametrize("place", ["title", "text", "code", "output"])
def test_no_text_becomes_an_element_because_it_looks_like_a_drawing(tmp_path, place):
    """The exporter writes quotes in a text as they are."""
    hostile = 'src="data:image/svg+xml,<script>x()</script>"'
    text = {name: hostile if name == place else "x" for name in ("title", "text", "code", "output")}
    outputs = [
        new_output("stream", text=text["output"]),
        new_output("display_data", {"text/html": f"<p title='{escape(text['text'])}'>{escape(text['text'])}</p>"}),
    ]
    notebook = tmp_path / "page.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(repr(text["code"]), outputs=outputs)]), notebook)
    masthead = pages.Masthead("a", text["title"], False)
    page = BeautifulSoup(pages.page_html(notebook, pages.SUMMARY, [pages.SUMMARY], masthead), "html.parser")
    assert len(page.find_all("script")) == 1
    assert hostile in page.get_text()


def test_a_study_without_a_plan_is_one_clear_error(paths):
    with pytest.raises(RecordError, match="no plan"):
        pages.build("example")
    assert not paths.folder.exists()


@pytest.mark.parametrize("crashed", [False, True], ids=["whole", "crashed-between-two-renames"])
def test_a_failing_notebook_leaves_the_last_good_report(paths, tmp_path, monkeypatch, crashed):
    write_titled(paths, mixed_entries()[:1])
    last_good = paths.report_previous if crashed else paths.folder
    for name in ("report", "tables"):
        (last_good / name).mkdir(parents=True)
        (last_good / name / "index.html").write_text("the last good report")
    monkeypatch.setattr(resources, "NOTEBOOKS", tmp_path / "nowhere")
    with pytest.raises(DlperfStudyError, match=r"(summary|scaling|quality)\.ipynb"):
        pages.build("example")
    for folder in (paths.report, paths.tables):
        assert (folder / "index.html").read_text() == "the last good report"


def test_every_link_of_the_pages_leads_somewhere(built, tmp_path):
    """Also where the folder of the pages was sent alone."""
    sent = Path(shutil.copytree(built.report, tmp_path / "sent"))
    broken, files = [], set()
    for page_file in sent.glob("*.html"):
        soup = BeautifulSoup(page_file.read_text(), "html.parser")
        for link in soup.find_all("a", href=True):
            name, _, anchor = str(link["href"]).partition("#")
            target = sent / name if name else page_file
            files.add(target.suffix)
            is_there = target.exists() and (not anchor or f'id="{anchor}"' in target.read_text())
            broken += [] if is_there else [(page_file.name, link["href"])]
    assert broken == []
    assert files == {".html", ".csv", ".tex", ".svg", ".pdf"}


def test_a_number_leads_to_the_runs_it_was_computed_from_and_their_evidence(built, page):
    page.goto((built.report / "index.html").as_uri())
    page.locator("#table-measured tbody tr:not(.group)", has_text="2").first.locator("td.number a").last.click()
    page.get_by_text("The runs it was computed from").click()
    page.wait_for_url("**/runs.html#*")
    assert page.locator("h1").inner_text() == "Runs"
    [configuration_id] = [path.name for path in built.configurations.iterdir() if path.name.endswith(page.url[-8:])]
    row = page.locator("tr:has(td:target)")
    assert row.locator("td").first.inner_text() == "1"
    heading = row.evaluate("row => row.previousElementSibling.innerText")
    assert heading.endswith(f": outputs/example/configurations/{configuration_id}/runs")
    shown = page.locator("#table-runs tbody tr:not(.group)").count()
    assert shown == len(list(built.configurations.glob("*/runs/*")))


#: The drawing of a page's first figure, as JavaScript.
FIRST_DRAWING = "document.querySelector('figure img')"


def test_a_phone_shows_the_drawing_for_a_column_and_a_list_of_facts_has_no_search_box(built, page):
    page.goto((built.report / "index.html").as_uri())
    for window, points in ((400, 252), (1280, 504)):
        page.set_viewport_size({"width": window, "height": 900})
        # The browser loads the other drawing some time after the window has its new size.
        page.wait_for_function(f"Math.round({FIRST_DRAWING}.naturalWidth * 72.27 / 96) === {points}")
    assert page.locator("#table-environments tr").count() > 8
    assert page.locator("#table-environments input").count() == 0


def test_a_table_is_sorted_by_size_and_searched(built, page):
    page.goto((built.report / "index.html").as_uri())
    table = page.locator("#table-measured table")
    heading = table.locator("thead th", has_text=re.compile("^Throughput"))
    column = heading.evaluate(_SUB_COLUMN)
    cells = table.locator(f"tbody tr:not(.group) td:nth-child({column})")
    printed = cells.all_inner_texts()
    throughputs = [float(text) for text in cells.evaluate_all(_FIRST_NUMBERS)]
    for order in (sorted(throughputs), sorted(throughputs, reverse=True)):
        heading.click()
        assert [float(text) for text in cells.evaluate_all(_FIRST_NUMBERS)] == order
    heading.click()
    assert cells.all_inner_texts() == printed


@pytest.mark.parametrize(("name", "table"), [("runs", "runs"), ("quality", "stability")])
def test_sorted_rows_have_a_short_label_each_and_a_search_without_a_hit_says_so(built, page, name, table):
    page.goto((built.report / f"{name}.html").as_uri())
    figure = page.locator(f"#table-{table}")
    groups = figure.locator("tr.group").all_inner_texts()
    first = figure.locator("tbody tr:not(.group) td:first-child")
    printed = first.all_inner_texts()
    assert not set(printed) & {*groups}
    headings = figure.locator("thead th")
    for heading in (headings.filter(has_text="Status"), headings.first):
        heading.click()
        labels = figure.locator("tbody tr:not(.group) .of-group:visible").all_inner_texts()
        assert len(labels) == len(printed)
        assert {*labels} == {group.partition(": outputs")[0] for group in groups}
    # The label is no part of the value that is sorted.
    assert first.evaluate_all(_LAST_NUMBERS) == sorted(map(int, printed))
    assert not figure.locator(".no-hit").is_visible()
    figure.locator("input[type=search]").fill("nowhere")
    assert figure.locator(".no-hit").inner_text() == "No row matches."
    figure.locator("input[type=search]").fill("completed")
    assert not figure.locator(".no-hit").is_visible()


#: The number after the label of a group.
_LAST_NUMBERS = "cells => cells.map(cell => parseInt(cell.lastChild.textContent))"
#: The number of the first cell below a heading; a heading may cover two.
_SUB_COLUMN = "h => [...h.parentNode.cells].slice(0, h.cellIndex).reduce((n, c) => n + c.colSpan, 1)"
#: Of the cells with a value, in order: what is missing is at the end.
_FIRST_NUMBERS = (
    "cells => cells.map(cell => parseFloat(cell.firstChild.textContent.replace(/\\s/g, '')))"
    ".filter(number => !isNaN(number))"
)
#: The lowest contrast of a text with the page behind it, as WCAG 2 defines it.
_CONTRAST = """() => {
  const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const page = light(getComputedStyle(document.documentElement).backgroundColor);
  const texts = [...document.querySelectorAll("p, a, td, th, figcaption, h1, h2, label, .highlight span")];
  return Math.min(...texts.map(e => light(getComputedStyle(e).color)).map(
    l => (Math.max(l, page) + 0.05) / (Math.min(l, page) + 0.05)));
}"""


def test_pages_can_be_read_in_the_dark_and_are_printed_without_empty_pages(built, page, tmp_path):
    if shutil.which("pdftotext") is None:
        need("pdftotext")
    for name in PAGES:
        page.emulate_media(color_scheme="dark")
        page.goto((built.report / name).as_uri())
        assert page.evaluate(_CONTRAST) > 4.5, name
        backdrop = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert backdrop == "rgb(21, 25, 28)"
    page.goto((built.report / "index.html").as_uri())
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    texts = subprocess.run(["pdftotext", tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True).stdout
    *sheets, after = texts.split("\f")
    assert after == ""
    assert all(sheet.strip() for sheet in sheets)
    assert "show code" not in texts
    assert "Parameters" not in texts
