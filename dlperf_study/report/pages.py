"""The report of a study: pages, tables and figures, written by executed notebooks.

Each notebook has a process of its own, because a kernel's state and folder are global.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dlperf_study import __version__
from dlperf_study.core import resources
from dlperf_study.core.errors import ReportError
from dlperf_study.core.paths import REPORT_VARIABLE, SELFTEST, StudyPaths
from dlperf_study.core.progress import Progress, Say
from dlperf_study.core.writing import write_atomically
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.history import study_measurements
from dlperf_study.dataset.inputs import record_report, report_digest
from dlperf_study.machines.supervision.locks import lock
from dlperf_study.machines.supervision.notebook import GRAMMAR, Execution, NotebookProcess, absent_module, first_done
from dlperf_study.report import context, section
from dlperf_study.report.formatting import text_if
from dlperf_study.report.tables.table import Page
from dlperf_study.selftest.result import last_result
from dlperf_study.study.plan import Plan
from dlperf_study.study.study import SECTIONS

TEMPLATES = Path(__file__).parent / "templates"
TEMPLATE = "study"
#: How many notebooks are executed at once, and for how long none may end: of 25,000 configurations one takes minutes.
PARALLEL = 2
TIMEOUT_SECONDS = 900.0
#: A notebook that uses less processor time in so many seconds stands still; how often that is looked at.
STILL_SECONDS, MIN_USED_SECONDS, LOOK_SECONDS = 120.0, 0.2, 5.0
#: The notebooks that take longest, which begin first, so that none of the others waits for them at the end.
LONGEST = ("quality", "scaling")
#: An element of a picture, in whose attributes ``<`` and ``>`` are escaped, and a drawing in it. The same in a text
#: between elements is no drawing: what becomes of its escapes there would be an element.
_PICTURE = re.compile(r"<(?:img|source) [^<>]*>")
_DRAWING = re.compile(r'src(?:set)?="data:image/svg\+xml,[^"]*"')

_END_OF_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")

SUMMARY = Page("summary", "Summary", "index.html")
HISTORY = Page("history", "History", "history.html")
RUNS = Page("runs", "Runs", section.RUNS_FILE)
SELFTEST_PAGE = Page("selftest", "Self-test", "index.html")
SELFTEST_TITLE = "The instrument tested with known answers"


@dataclass(frozen=True)
class Masthead:
    """The head of every page of a study; the first has all."""

    name: str
    title: str
    quick: bool
    about: str = ""
    details: str = ""
    made: str = ""

    @classmethod
    def of(cls, dataset: Dataset) -> "Masthead":
        """Return the head of the pages of a study."""
        plan = dataset.plan
        about, details = (*_END_OF_SENTENCE.split(plan.about, maxsplit=1), "")[:2]
        if about and plan.quick:
            about = f"The full study: {about}"
        stretch = context.stretch_of_time(dataset.completed_runs)
        when = text_if(stretch, f"{context.by_origin(dataset, 'origin')} in {stretch}")
        made = filter(None, [when, _author()])
        return cls(plan.study, plan.title, plan.quick, about, details, " · ".join(made))


def _author() -> str:
    """Return who builds the report, by git's user name."""
    command = ["git", "-C", str(resources.workspace()), "config", "user.name"]
    with suppress(OSError, subprocess.TimeoutExpired):
        name = subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
        return text_if(name, f"report built by {name}")
    return ""


def build(study: str, say: Say = print) -> Path:
    """Update the datasets of ``study``, write its report, return its first page.

    ``say`` is called once the study is known to have a plan, and every few seconds with the pages that are built.

    Raises :class:`ReportError` with the cell and its error when a notebook fails; the executed notebooks
    then stay in a folder next to the report, and the last good report is left as it was. Raises BusyError
    while another process builds the same report, RecordError for a study without a plan.
    """
    paths = StudyPaths.of(study)
    # Without a plan nothing may be left, not even the file of the lock.
    Plan.read(paths.plan_file)
    say("building the report …")
    with lock(paths.report_lock, f"building the report of study {study}", "would mix their pages"):
        inputs = report_digest(paths)
        dataset = study_measurements(study, say)[-1].dataset
        plan = dataset.plan
        pages = [SUMMARY, *(Page.answering(question) for question in SECTIONS if question in plan.sections)]
        if paths.earlier_measurements():
            pages.append(HISTORY)
        pages.append(RUNS)
        progress = Progress("building the report", "page", len(pages), say, at_once=PARALLEL)
        _write_pages(paths, pages, Masthead.of(dataset), progress)
        record_report(paths, inputs)
    return paths.report_page


def build_selftest() -> Path:
    """Write the page on the last self-test; raises as ``build`` does."""
    paths = StudyPaths.of(SELFTEST)
    with lock(paths.report_lock, "building the page of the self-test", "would mix their pages"):
        masthead = Masthead(SELFTEST, SELFTEST_TITLE, last_result().quick)
        _write_pages(paths, [SELFTEST_PAGE], masthead, Progress("building the report", "page", 1, print))
    return paths.report_page


def _write_pages(paths: StudyPaths, pages: Sequence[Page], masthead: Masthead, progress: Progress) -> None:
    """Execute the notebooks of pages and replace the last pages."""
    with _new_report(paths) as folder:
        notebooks = folder / "notebooks"
        notebooks.mkdir()
        by_notebook = {page.notebook: page for page in pages}
        study, environment = paths.folder.name, {REPORT_VARIABLE: str(paths.report_unfinished)}
        executions = []
        for name in by_notebook:
            executed, errors = (notebooks / f"{name}.{kind}" for kind in ("ipynb", "errors"))
            executions.append(Execution(resources.notebook(name), executed, {"study": study}, errors, environment))

        def write_page(notebook: Path) -> None:
            page = by_notebook[notebook.stem]
            write_atomically(folder / page.file, page_html(notebook, page, pages, masthead))
            progress.end(page.title.lower())

        # Imported while the server of notebooks still imports, for which the first of them waits.
        _exporter()
        executions.sort(key=lambda execution: execution.output.stem not in LONGEST)
        execute(executions, write_page)
        for part in (paths.tables, paths.figures):
            # With its own copies the folder of the pages can be sent alone.
            written = paths.report_unfinished / part.name
            if written.exists():
                shutil.copytree(written, folder / part.name, ignore=shutil.ignore_patterns("*.html"))


@contextmanager
def _new_report(paths: StudyPaths) -> Iterator[Path]:
    """Yield an empty folder; without an error it replaces the report."""
    unfinished, previous = paths.report_unfinished, paths.report_previous
    parts = (paths.tables, paths.figures, paths.report)
    for part in parts:
        # A crash between two renames left the last good one aside.
        if (previous / part.name).exists() and not part.exists():
            (previous / part.name).rename(part)
    for leftover in (unfinished, previous):
        shutil.rmtree(leftover, ignore_errors=True)
    pages = unfinished / paths.report.name
    pages.mkdir(parents=True)
    yield pages
    previous.mkdir()
    for part in parts:
        if part.exists():
            part.rename(previous / part.name)
        if (unfinished / part.name).exists():
            (unfinished / part.name).rename(part)
    for leftover in (unfinished, previous):
        shutil.rmtree(leftover, ignore_errors=True)


def execute(executions: list[Execution], use: Callable[[Path], None]) -> None:
    """Execute notebooks, at most ``PARALLEL`` at a time; ``use`` each copy.

    Raises :class:`ReportError` at the first that fails, with the cell and its error; what was executed stays.
    """
    waiting, running = list(executions), list[NotebookProcess]()
    try:
        _start(waiting, running)
        while running:
            done = _next_done(running)
            running.remove(done)
            code, errors, execution = done.wait(0), done.errors(), done.execution
            done.end()
            if failure := _failure(execution.output, code, errors):
                raise ReportError(f"{execution.source.name}: {failure}\nWhat was executed is in {execution.output}")
            execution.errors.unlink(missing_ok=True)
            _start(waiting, running)
            use(execution.output)
    finally:
        for process in running:
            process.end()


def _next_done(running: list[NotebookProcess]) -> NotebookProcess:
    """Wait for the end of a notebook; raises ReportError where one stands still, or none ends in time."""
    begun = time.monotonic()
    last_work = {id(process): (begun, process.processor_seconds()) for process in running}
    while time.monotonic() < begun + TIMEOUT_SECONDS:
        if done := first_done(running, LOOK_SECONDS):
            return done
        for process in running:
            since, used_seconds = last_work[id(process)]
            seconds = process.processor_seconds()
            if seconds >= used_seconds + MIN_USED_SECONDS or process.waits_for_disk():
                last_work[id(process)] = (time.monotonic(), seconds)
            elif time.monotonic() > since + STILL_SECONDS:
                reason = "; ".join(process.stopped()) or f"no processor was used for {STILL_SECONDS:.0f} s"
                raise ReportError(f"{process.execution.source.name}: stands still: {reason}")
    name = running[0].execution.source.name
    raise ReportError(f"{name}: not done, and no notebook ended for {TIMEOUT_SECONDS:.0f} s; stopped")


def _start(waiting: list[Execution], running: list[NotebookProcess]) -> None:
    while waiting and len(running) < PARALLEL:
        running.append(NotebookProcess(waiting.pop(0)))


def _failure(executed: Path, code: int | None, errors: str) -> str:
    # Papermill may have ended before it wrote any cell.
    cells: list[Any] = []
    # On a full disk the notebook may be there without its content.
    with suppress(OSError, ValueError):
        cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    for position, cell in enumerate(cells, 1):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return f"cell {position} raised {output['ename']}: {output['evalue']}"
    if code:
        last_lines = "\n".join(errors.splitlines()[-3:])
        return f"ended with code {code}{text_if(last_lines, f': {last_lines}')}"
    # Papermill's metadata calls cells completed that a dead kernel never ran.
    for position, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code" and cell["source"] and cell["execution_count"] is None:
            return f"cell {position} was never executed"
    return ""


def page_html(notebook: Path, page: Page, pages: Sequence[Page], masthead: Masthead) -> str:
    """Return the page of an executed notebook; its code is hidden."""
    resources = {
        "page": asdict(page),
        "pages": list(map(asdict, pages)),
        "study": asdict(masthead),
        "style": (TEMPLATES / TEMPLATE / "page.css").read_text(encoding="utf-8"),
        "script": (TEMPLATES / TEMPLATE / "page.js").read_text(encoding="utf-8"),
        "version": __version__,
    }
    html, _ = _exporter().from_filename(str(notebook), resources=resources)
    return unescape_drawings(str(html))


@cache
def _exporter() -> Any:
    """Return what makes a page of a notebook."""
    # Reading a study needs no exporter, and importing this one takes two seconds.
    with absent_module(GRAMMAR):
        from nbconvert.exporters import HTMLExporter

    exporter = HTMLExporter(template_name=TEMPLATE, extra_template_basedirs=[str(TEMPLATES)])
    exporter.anchor_link_text = "#"
    return exporter


def unescape_drawings(html: str) -> str:
    """Return a page with unescaped ``<`` in drawings, which saves an eighth."""

    def unescape(drawing: re.Match[str]) -> str:
        return drawing[0].replace("&lt;", "<").replace("&gt;", ">")

    return _PICTURE.sub(lambda picture: _DRAWING.sub(unescape, picture[0]), html)
