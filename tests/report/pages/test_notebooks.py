"""Notebooks that fail in the ways notebooks fail; each costs one kernel."""

import re
from pathlib import Path

import nbformat
import pytest

from dlperf_study.core.errors import ReportError
from dlperf_study.machines.supervision.notebook import Execution
from dlperf_study.report import pages
from dlperf_study.report.pages import execute

pytestmark = pytest.mark.timeout(120)


def execute_notebook(folder: Path, *sources: str) -> Path:
    """Execute a notebook of these cells for the study *example*, and return its executed copy."""
    parameters = nbformat.v4.new_code_cell('study = "nothing"', metadata={"tags": ["parameters"]})
    cells = [parameters, *map(nbformat.v4.new_code_cell, sources)]
    source, out = folder / "in" / "page.ipynb", folder / "out"
    source.parent.mkdir(parents=True)
    out.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}}), source)
    copies: list[Path] = []
    execute([Execution(source, out / source.name, {"study": "example"}, out / "page.errors")], copies.append)
    [copy] = copies
    return copy


def test_the_study_arrives_and_the_copy_is_kept(tmp_path):
    assert "EXAMPLE" in execute_notebook(tmp_path, "study.upper()").read_text()


def test_an_error_names_the_cell_and_keeps_the_executed_notebook(tmp_path, refused):
    with refused(ReportError):
        execute_notebook(tmp_path, "1 / 0")
    assert "ZeroDivisionError" in (tmp_path / "out" / "page.ipynb").read_text()


@pytest.mark.parametrize("ending", ["import sys; sys.exit(0)", "import os; os._exit(0)"])
def test_a_notebook_that_ends_early_is_no_success(tmp_path, ending):
    with pytest.raises(ReportError, match=re.escape(str(tmp_path / "out" / "page.ipynb"))):
        execute_notebook(tmp_path, ending, "'never reached'")


def test_a_notebook_has_the_environment_of_now_and_not_that_of_the_first(tmp_path, monkeypatch):
    for value in ("former", "latter"):
        monkeypatch.setenv("DLPERF_STUDY_TEST", value)
        executed = execute_notebook(tmp_path / value, "import os; os.environ['DLPERF_STUDY_TEST'].upper()")
        assert value.upper() in executed.read_text()


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()", "no processor was used for 2 s"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "is stopped by a signal"),
    ],
)
def test_a_notebook_that_stands_still_is_named_with_the_reason(tmp_path, monkeypatch, cell, reason):
    monkeypatch.setattr(pages, "STILL_SECONDS", 2.0)
    monkeypatch.setattr(pages, "LOOK_SECONDS", 0.5)
    # A kernel that starts beside other tests may have to wait for a processor.
    monkeypatch.setattr(pages, "MIN_USED_SECONDS", 0.05)
    with pytest.raises(ReportError, match=rf"page\.ipynb: stands still: .*{reason}"):
        execute_notebook(tmp_path, cell)
