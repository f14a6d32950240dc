"""What ``make lab`` serves: notebooks that opening does not change, and files that the links of notebooks lead to."""

import asyncio
import json
import os
import posixpath
import re
import shutil
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import dlperf_study
from dlperf_study.core.paths import OUTPUTS_VARIABLE, PROJECT, StudyPaths
from dlperf_study.report import tables
from tests.evidence_factory import Planned, configuration
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


def test_the_list_of_studies_leads_to_their_reports(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.chdir(tmp_path / "notebooks")
    paths = StudyPaths.of("example")
    write_titled(paths, [Planned(configuration(), ALONE)])
    paths.report.mkdir()
    paths.report_page.write_text("<html></html>")
    targets = links(dlperf_study.studies()._repr_html_())
    assert targets == [os.path.relpath(paths.report_page)]
    # JupyterLab asks for the path of a link below the root, from the folder of its notebook.
    path = posixpath.normpath(posixpath.join("notebooks", targets[0]))
    assert opened(tmp_path, path)["type"] == "file"


def test_a_table_in_a_notebook_has_its_style_and_leads_nowhere():
    """No page of a report is next to a notebook."""
    html = tables.measured(on_devices(1, 2))._repr_html_()
    assert html.startswith("<style>")
    assert "figure.table" in html
    assert "<table>" in html
    assert links(html) == []
