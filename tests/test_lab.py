"""What ``make lab`` serves: notebooks that opening does not change, and files that the links of notebooks lead to."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import dlperf_study
from dlperf_study.core.paths import OUTPUTS_VARIABLE, PROJECT, StudyPaths
from dlperf_study.report import tables
from tests.evidence_factory import Planned, configuration
from tests.jupyterlab import CELL_SECONDS, jupyterlab, run_all_cells
from tests.report.conftest import ALONE, on_devices, write_titled
from tools.lab_contents import LANGUAGE, NotebooksAsInGit

NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))


def manager(root: Path) -> NotebooksAsInGit:
    return NotebooksAsInGit(root_dir=str(root))


def awaited(call: Coroutine[Any, Any, Any]) -> Any:
    """Return what a call returns, in a thread of its own: a browser of other tests keeps this one's event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, call).result()


def opened(root: Path, path: str) -> dict[str, Any]:
    return dict(awaited(manager(root).get(path)))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_that_was_opened_and_saved_has_the_same_bytes(tmp_path, notebook):
    shutil.copy(notebook, tmp_path)
    model = opened(tmp_path, notebook.name)
    # What a kernel would add is there already, so that opening modifies nothing.
    assert model["content"]["metadata"]["language_info"] == LANGUAGE
    awaited(manager(tmp_path).save({**model, "type": "notebook"}, notebook.name))
    assert (tmp_path / notebook.name).read_bytes() == notebook.read_bytes()


def test_a_notebook_of_another_kernel_and_other_files_are_left_alone(tmp_path):
    content = json.loads(NOTEBOOKS[0].read_text())
    content["metadata"] |= {"kernelspec": {"display_name": "R", "name": "ir"}, "language_info": {"name": "R"}}
    (tmp_path / "r.ipynb").write_text(json.dumps(content))
    (tmp_path / "text.md").write_text("# Text\n")
    assert opened(tmp_path, "r.ipynb")["content"]["metadata"]["language_info"] == {"name": "R"}
    assert opened(tmp_path, "text.md")["content"] == "# Text\n"


def links(html: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'href="([^"#]+)', html)]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with notebooks, and a study whose report has two pages and a script."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    shutil.copytree(PROJECT / "notebooks", tmp_path / "notebooks")
    paths = StudyPaths.of("example")
    write_titled(paths, [Planned(configuration(), ALONE)])
    (paths.report / "tables").mkdir(parents=True)
    first = '<a href="runs.html">Runs</a> <a href="tables/a.csv" download>CSV</a><script src="tables/a.js"></script>'
    paths.report_page.write_text(first)
    (paths.report / "runs.html").write_text("all runs")
    (paths.report / "tables" / "a.js").write_text("document.title = 'all rows'")
    (paths.report / "tables" / "a.csv").write_text("1")
    return tmp_path


@pytest.mark.parametrize("root", [".", "notebooks"])
def test_a_report_is_a_link_where_the_server_has_it_and_else_its_path(workspace, root, monkeypatch):
    monkeypatch.setenv("JPY_PARENT_PID", "7")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(workspace))
    server = {"root_dir": str(workspace / root), "base_url": "/user/me/"}
    (workspace / "jpserver-7.json").write_text(json.dumps(server))
    html, report = dlperf_study.studies()._repr_html_(), StudyPaths.of("example").report_page
    assert links(html) == (["/user/me/files/outputs/example/report/index.html"] if root == "." else [])
    assert (str(report) in html) == (root != ".")
    monkeypatch.delenv("JPY_PARENT_PID")
    assert links(dlperf_study.studies()._repr_html_()) == [os.path.relpath(report)]


@pytest.mark.ci
def test_the_list_of_studies_opens_reports_in_jupyterlab(workspace, chromium):
    manager_class = "--ServerApp.contents_manager_class=tools.lab_contents.NotebooksAsInGit"
    with jupyterlab(workspace, manager_class) as lab:
        page = run_all_cells(lab, chromium, "notebooks/00_index")
        link = page.locator(".jp-OutputArea a:text-is('report')")
        target = link.get_attribute("href", timeout=1000 * CELL_SECONDS)
        assert link.get_attribute("target") == "_blank"
        with urlopen(lab.format(target.removeprefix("/"))) as answer:
            assert (answer.status, answer.read()) == (200, StudyPaths.of("example").report_page.read_bytes())
        with page.context.expect_page() as opened_page:
            link.click()
        report = opened_page.value
        report.wait_for_function("document.title == 'all rows'")
        with report.expect_download() as download:
            report.click("text=CSV")
        assert download.value.failure() is None
        report.click("text=Runs")
        report.wait_for_selector("text=all runs")
        page.close()


def test_a_table_in_a_notebook_has_its_style_and_leads_nowhere():
    """No page of a report is next to a notebook."""
    html = tables.measured(on_devices(1, 2))._repr_html_()
    assert html.startswith("<style>")
    assert "figure.table" in html
    assert "<table>" in html
    assert links(html) == []
