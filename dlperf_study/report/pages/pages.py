"""The report of a study: notebooks executed, pages written, and only then shown instead of the old ones.

A page is one file, with its style and figures in it and no script at all.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.dataset.dataset import up_to_date
from dlperf_study.paths import StudyPaths
from dlperf_study.report.pages.notebooks import execute_notebooks
from dlperf_study.study.study import question_names
from dlperf_study.supervision.locks import lock

TEMPLATES = Path(__file__).parent / "templates"
TEMPLATE = "study"


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
            _write_pages(pages, masthead, folder)
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


def _write_pages(pages: Sequence[Page], masthead: Masthead, folder: Path) -> None:
    notebooks = folder / "notebooks"
    notebooks.mkdir()
    executed = execute_notebooks([page.notebook for page in pages], masthead.name, notebooks)
    for page, notebook in zip(pages, executed, strict=True):
        (folder / page.file).write_text(page_html(notebook, page, pages, masthead), encoding="utf-8")


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
