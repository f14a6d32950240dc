"""What every notebook in git owes its reader."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.core.resources import notebook
from dlperf_study.study.study import SECTIONS

NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
STUDY_NOTEBOOKS = ("summary", *SECTIONS, "explore")
SKELETON = ["## Question", "## Parameters", "## Data", "## Result", "## Diagnostics"]
#: Who measures by hand sees the result without scrolling past the parameters.
SKELETONS = {
    "run_configuration": ["## Question", "## Result", "## Parameters", "## Data", "## Diagnostics"],
    "index": ["## Results", "## Notebooks", "## Files"],
}
#: A page of the report opens with its findings; sections that have nothing to show have no heading.
PAGE_SKELETON = ["## Method"]
PAGES = ("summary", "selftest", "history", "runs", *SECTIONS)
#: Pages show tables and figures that no dataset alone gives, or several by one name; a run is measured, not read.
WITH_INNER_NAMES = {"audit", "published", "history", "selftest", "run_configuration"}
MOST_CELLS, MOST_LINES = 30, 10
every = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def name_of(path: Path) -> str:
    """Return the name of a notebook without its place."""
    return path.stem[3:]


def cells(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def parameters(path: Path) -> dict[str, object]:
    """Return the names and values of the cell that papermill overrides."""
    [cell] = [cell for cell in cells(path, "code") if "parameters" in cell.metadata.get("tags", [])]
    assigned = ast.parse(cell.source).body
    assert all(isinstance(line, ast.Assign | ast.AnnAssign) for line in assigned), "only assignments"
    return {_target(line): ast.literal_eval(line.value) for line in assigned}


def _target(line: ast.stmt) -> str:
    target = line.targets[0] if isinstance(line, ast.Assign) else line.target
    return target.id


def test_a_list_of_files_has_the_index_first_and_the_pages_in_the_order_of_the_report():
    assert all(re.fullmatch(r"\d\d_[a-z]+(_[a-z]+)*", path.stem) for path in NOTEBOOKS)
    first, *others = list(map(name_of, NOTEBOOKS))
    assert first == "index"
    assert [name for name in others if name in PAGES] == ["summary", *SECTIONS, "history", "runs", "selftest"]


@every
def test_valid_and_of_one_kernel(path):
    content = nbformat.read(path, as_version=4)
    nbformat.validate(content)
    assert content.metadata.kernelspec.name == "python3"


@every
def test_no_outputs_in_git(path):
    assert [cell.id for cell in cells(path, "code") if cell.outputs or cell.execution_count is not None] == []


@every
def test_short(path):
    assert len(nbformat.read(path, as_version=4).cells) <= MOST_CELLS
    logic = [cell for cell in cells(path, "code") if "parameters" not in cell.metadata.get("tags", [])]
    assert [cell.id for cell in logic if len(cell.source.splitlines()) > MOST_LINES] == []


@every
def test_logic_lives_in_the_package(path):
    defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    defining_cells = [
        cell.id
        for cell in cells(path, "code")
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, defined)
    ]
    assert defining_cells == []


@every
def test_the_public_names_suffice(path):
    imports = [node for cell in cells(path, "code") for node in ast.walk(ast.parse(cell.source))]
    imports = [node for node in imports if isinstance(node, ast.Import | ast.ImportFrom)]
    inner = {ast.unparse(node) for node in imports} - {"import dlperf_study", "from IPython.display import display"}
    assert bool(inner) == (name_of(path) in WITH_INNER_NAMES), inner


@every
def test_no_path_and_no_folder_of_this_machine(path):
    absolute = r"(?<![\w.<:/])/[a-z]+/"
    assert re.findall(rf"{absolute}|chdir|sys\.path", path.read_text()) == []


@every
def test_the_skeleton(path):
    headings = [line for cell in cells(path, "markdown") for line in cell.source.splitlines() if line.startswith("## ")]
    assert headings == (PAGE_SKELETON if name_of(path) in PAGES else SKELETONS.get(name_of(path), SKELETON))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_its_figure_and_table_and_then_its_findings(name):
    path = notebook(name)
    _parameters, _imports, *shown = [cell.source for cell in cells(path, "code")]
    position = next(i for i, source in enumerate(shown) if source.startswith(("results.findings(", "page_findings.")))
    has_long_table = name in ("audit", "resources", "runs")
    assert position == (0 if has_long_table else 1)


@every
def test_parameters_are_flat_scalars(path):
    if name_of(path) == "index":
        return
    assert [name for name, value in parameters(path).items() if not isinstance(value, str | int | float | bool)] == []


def test_the_index_leads_to_notebooks_and_to_files_that_are_there():
    text = "".join(cell.source for cell in cells(notebook("index"), "markdown"))
    targets = set(re.findall(r"\]\(([^)]+)\)", text))
    assert {path.name for path in NOTEBOOKS} - {notebook("index").name} <= targets
    assert [target for target in targets if not (PROJECT / "notebooks" / target).exists()] == []


def test_the_docs_say_what_every_notebook_does():
    text = (PROJECT / "docs" / "notebooks.md").read_text()
    table = "".join(line for line in text.splitlines() if line.startswith("|"))
    assert [path.name for path in NOTEBOOKS if f"`{path.name}`" not in table] == []


@pytest.mark.parametrize("name", STUDY_NOTEBOOKS)
def test_a_study_notebook_takes_a_study(name):
    assert parameters(notebook(name)) == {"study": "quickstart"}
