"""Notebooks that fail in the ways notebooks fail; each costs one kernel."""

import re
from pathlib import Path

import nbformat
import pytest

from dlperf_study.core.errors import ReportError
from dlperf_study.machines.supervision.notebook import Execution
from dlperf_study.report.pages import execute


def notebook(folder: Path, *sources: str) -> Path:
    parameters = nbformat.v4.new_code_cell('study = "nothing"', metadata={"tags": ["parameters"]})
    cells = [parameters, *map(nbformat.v4.new_code_cell, sources)]
    path = folder / "page.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}}), path)
    return path


@pytest.mark.timeout(120)
def test_the_study_arrives_and_the_copy_is_kept(tmp_path):
    executed = execute_notebook(_in(tmp_path, "study.upper()"), "example", _made(tmp_path / "out"))
    assert "EXAMPLE" in executed.read_text()


@pytest.mark.timeout(120)
def test_an_error_names_the_cell_and_keeps_the_executed_notebook(tmp_path, refused):
    out = _made(tmp_path / "out")
    with refused(ReportError):
        execute_notebook(_in(tmp_path, "1 / 0"), "example", out)
    assert "ZeroDivisionError" in (out / "page.ipynb").read_text()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("ending", ["import sys; sys.exit(0)", "import os; os._exit(0)"])
def test_a_notebook_that_ends_early_is_no_success(tmp_path, ending):
    out = _made(tmp_path / "out")
    with pytest.raises(ReportError, match=re.escape(str(out / "page.ipynb"))):
        execute_notebook(_in(tmp_path, ending, "'never reached'"), "example", out)


@pytest.mark.timeout(120)
def test_a_notebook_has_the_environment_of_now_and_not_that_of_the_first(tmp_path, monkeypatch):
    for value in ("former", "latter"):
        monkeypatch.setenv("DLPERF_STUDY_TEST", value)
        source = _in(_made(tmp_path / value), "import os; os.environ['DLPERF_STUDY_TEST'].upper()")
        executed = execute_notebook(source, "example", _made(tmp_path / value / "out"))
        assert value.upper() in executed.read_text()


def execute_notebook(source: Path, study: str, folder: Path) -> Path:
    execution = Execution(source, folder / source.name, {"study": study}, folder / "page.errors")
    copies: list[Path] = []
    execute([execution], copies.append)
    [copy] = copies
    return copy


def _in(folder: Path, *sources: str) -> Path:
    return notebook(_made(folder / "in"), *sources)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
