"""The report of a study: notebooks executed, pages written, and only then shown instead of the old ones.

Each notebook is executed in an operating-system process of its own, because a kernel's state and folder are global.
A page is one file, with its style and figures in it and no script at all.
"""

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.dataset.dataset import up_to_date
from dlperf_study.errors import ReportError
from dlperf_study.paths import NOTEBOOKS, StudyPaths
from dlperf_study.study.study import question_names
from dlperf_study.supervision.locks import lock
from dlperf_study.supervision.notebook import Execution, NotebookProcess, first_done

TEMPLATES = Path(__file__).parent / "templates"
TEMPLATE = "study"
#: How many notebooks are executed at once, and how long all of them together may take.
PARALLEL = 2
TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class Page:
    """One page of the report and the notebook it is made from."""

    notebook: str
    title: str
    file: str

    @classmethod
    def answering(cls, question: str) -> "Page":
        """Return the page that answers one of the questions a study may ask."""
        return cls(question, question.capitalize(), f"{question}.html")


SUMMARY = Page("summary", "Summary", "index.html")


@dataclass(frozen=True)
class Masthead:
    """The head of every page of one study."""

    name: str
    title: str
    quick: bool


def build(study: str) -> Path:
    """Bring the dataset of ``study`` up to date and write its pages; return the page a person opens first.

    Raises :class:`ReportError` with the cell and its error when a notebook fails; the executed notebooks
    then stay in a folder next to the report, and the last good report is left as it was. Raises BusyError
    while another process builds the same report.
    """
    paths = StudyPaths.of(study)
    with lock(paths.report_lock, f"building the report of study {study}", "would mix their pages"):
        plan = up_to_date(paths).plan
        pages = [SUMMARY, *(Page.answering(question) for question in question_names() if question in plan.questions)]
        masthead = Masthead(study, plan.title, plan.quick)
        with _new_report(paths) as folder:
            notebooks = folder / "notebooks"
            notebooks.mkdir()
            executed = execute_notebooks([page.notebook for page in pages], study, notebooks)
            for page, notebook in zip(pages, executed, strict=True):
                (folder / page.file).write_text(page_html(notebook, page, pages, masthead), encoding="utf-8")
    return paths.report_page


@contextmanager
def _new_report(paths: StudyPaths) -> Iterator[Path]:
    """Yield an empty folder that replaces the report when all went well, and stays when not."""
    unfinished, previous = paths.report_unfinished, paths.report_previous
    for leftover in (unfinished, previous):
        shutil.rmtree(leftover, ignore_errors=True)
    unfinished.mkdir(parents=True)
    yield unfinished
    if paths.report.exists():
        paths.report.rename(previous)
    unfinished.rename(paths.report)
    shutil.rmtree(previous, ignore_errors=True)


def execute_notebooks(names: list[str], study: str, folder: Path) -> list[Path]:
    """Execute the report notebooks of a study into ``folder``, two at a time; return the copies, in order.

    Raises :class:`ReportError` with the cell and its error; what was executed stays in ``folder``.
    """
    executions = []
    for name in names:
        source = NOTEBOOKS / f"{name}.ipynb"
        executions.append(Execution(source, folder / source.name, {"study": study}, folder / f"{name}.errors"))
    execute(executions)
    return [execution.output for execution in executions]


def execute(executions: list[Execution]) -> None:
    """Execute notebooks, at most ``PARALLEL`` at a time; raises ReportError at the first that fails."""
    waiting, running = list(executions), list[NotebookProcess]()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        while waiting or running:
            while waiting and len(running) < PARALLEL:
                running.append(NotebookProcess(waiting.pop(0)))
            done = first_done(running, deadline - time.monotonic())
            if done is None:
                name = running[0].execution.source.name
                raise ReportError(f"{name}: not done after {TIMEOUT_SECONDS:.0f} s; stopped")
            running.remove(done)
            _close(done)
    finally:
        for process in running:
            process.end()


def _close(process: NotebookProcess) -> None:
    """End a process that is done; raise ReportError when its notebook failed."""
    code, errors, execution = process.wait(0), process.errors(), process.execution
    process.end()
    failure = _failure(execution.output, code, errors)
    if failure:
        raise ReportError(f"{execution.source.name}: {failure}\nWhat was executed is in {execution.output}")
    execution.errors.unlink(missing_ok=True)


def _failure(executed: Path, code: int | None, errors: str) -> str:
    """Return why a notebook failed: the first error of a cell, how its process ended, or a cell that was left out."""
    # Papermill may have ended before it wrote any cell.
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"] if executed.exists() else []
    for position, cell in enumerate(cells, 1):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return f"cell {position} raised {output['ename']}: {output['evalue']}"
    if code:
        last_lines = "\n".join(errors.splitlines()[-3:])
        return f"ended with code {code}: {last_lines}"
    # Papermill's metadata calls cells completed that a dead kernel never ran.
    for position, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code" and cell["source"] and cell["execution_count"] is None:
            return f"cell {position} was never executed"
    return ""


def page_html(notebook: Path, page: Page, pages: Sequence[Page], masthead: Masthead) -> str:
    """Return the page of one executed notebook; the code is in it, hidden until a reader opens it."""
    # Reading a study needs no exporter, and importing this one takes two seconds.
    from nbconvert.exporters import HTMLExporter

    exporter = HTMLExporter(template_name=TEMPLATE, extra_template_basedirs=[str(TEMPLATES)])
    exporter.exclude_anchor_links = True
    resources = {
        "page": asdict(page),
        "pages": list(map(asdict, pages)),
        "study": asdict(masthead),
        "style": (TEMPLATES / TEMPLATE / "page.css").read_text(encoding="utf-8"),
        "version": __version__,
    }
    html, _ = exporter.from_filename(str(notebook), resources=resources)
    return str(html)
