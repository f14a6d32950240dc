"""How a number was made, one click away on a page: its formula, its runs, and code that has both in a notebook."""

from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.findings.selftest import SelftestPower
from dlperf_study.report.formatting import format_column
from dlperf_study.report.page_findings import PageFindings
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import defined, laid_out, measured_column
from tests.evidence_factory import example_study
from tests.report.pages.test_long_tables import written_page


def test_a_click_on_a_number_shows_how_it_was_made(chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "measured"))
    paths = StudyPaths.of("many")
    example_study(paths)
    dataset = collect(paths)
    measured = dataset.configurations.dropna(subset="throughput")
    columns = [measured_column(dataset, name) for name in ("step_seconds", "throughput")]
    headings, rows = laid_out(columns, measured.itertuples())
    notes = (defined("step_seconds"), defined("throughput"))
    page_file = written_page(tmp_path, Table("many", "Many", "", headings, rows, notes))
    with chromium.new_context(offline=True) as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        page.locator("td.number a").nth(1).click()
        dialog = page.locator("dialog")
        first = next(measured.itertuples())
        assert dialog.locator("h2").inner_text() == " ".join(format_column(first, "throughput"))
        assert defined("throughput") in dialog.inner_text()
        assert dialog.locator("a").get_attribute("href").endswith(first.configuration_id.rpartition("-")[2])
        code = dialog.locator("pre").inner_text()
        dialog.locator("button").click()
        # A dialog closes after the click, not within it.
        page.locator("dialog").wait_for(state="detached")
    shown: list[Any] = []
    *lines, last = code.splitlines()
    names: dict[str, Any] = {"display": shown.append}
    exec("\n".join(lines), names)
    runs = eval(last, names)
    assert shown[0]["throughput"].tolist() == [first.throughput]
    assert runs["throughput"].tolist() == dataset.select_runs(first.configuration_id)["throughput"].tolist()


def test_a_number_of_a_sentence_shows_the_same_as_its_cell(chromium: Any, tmp_path: Path):
    heading = Heading("Speedup", "×", numeric=True, interval=True, column="speedup")
    rows = ((Cell("1.39", "[1.2, 1.6]", evidence="run-a"),), (Cell("2", "[1, 3]", evidence="run-b"),))
    rows += ((Cell("2", "[1, 3]", evidence="run-c"),),)
    page_file = written_page(tmp_path, Table("many", "Many", "", (heading,), rows))
    sentences = ("fast: 1.39 times [1.2, 1.6]", "of two cells: 2 [1, 3]", "of none: 7 [6, 8]")
    content = page_file.read_text(encoding="utf-8")
    figure = content.index("<figure")
    findings = PageFindings(tuple(map(SelftestPower, sentences)))._repr_html_()
    page_file.write_text(content[:figure] + findings + content[figure:], encoding="utf-8")
    with chromium.new_context(offline=True) as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        assert page.locator(".findings li").all_inner_texts() == [f"{text}." for text in sentences]
        [button] = page.locator(".findings button").all()
        button.click()
        dialog = page.locator("dialog")
        assert dialog.locator("h2").inner_text() == "1.39 [1.2, 1.6]"
        assert dialog.locator("p").first.inner_text() == defined("speedup")
        assert dialog.locator("a").get_attribute("href").endswith("#run-a")
