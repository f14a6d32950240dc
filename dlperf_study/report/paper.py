r"""The folder of a study for a paper: figures, tables, macros, methods, references, and a document that shows them.

Every number of a configuration is a macro; sentences on results and methods are those of the report.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.writing import write_atomically
from dlperf_study.dataset.dataset import Dataset, up_to_date
from dlperf_study.report import context, figures, tables
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import COLUMN, WIDTHS
from dlperf_study.report.macros import macros
from dlperf_study.report.methods import methods
from dlperf_study.report.paper_tables import for_paper, has_numbers
from dlperf_study.report.results import results
from dlperf_study.report.tables.latex import latex_escaped, latex_table
from dlperf_study.report.tables.table import Table

#: Half a page: a drawing for a column that is higher has its drawing for a page in the document.
_COLUMN_INCHES = 4.5
TEMPLATES = Path(__file__).parent / "templates" / "paper"
#: What belongs into a paper about each question; what is empty in a study is left out.
TABLES: dict[str, tuple[Callable[[Dataset], Table], ...]] = {
    "": (tables.measured,),
    "scaling": (tables.scaling, tables.factors),
    "communication": (tables.communication,),
    "comparison": (tables.comparison, tables.differences),
}
FIGURES: dict[str, Callable[[Dataset], Iterator[Figure]]] = {
    "": figures.overview,
    "scaling": figures.scaling,
    "communication": figures.communication,
    "comparison": figures.comparison,
}


def write_paper(paths: StudyPaths) -> Path:
    """Write the folder ``paper`` of a study anew, and return it.

    Raises EvidenceError for a study without a plan, or without a completed run.
    """
    dataset = up_to_date(paths)
    if context.completed_runs(dataset).empty:
        raise EvidenceError(f"{paths.folder}: no run completed, so there is nothing to publish")
    unfinished = paths.paper.with_name(".paper")
    shutil.rmtree(unfinished, ignore_errors=True)
    floats = [*_write_figures(dataset, unfinished), *_write_tables(dataset, unfinished)]
    write_atomically(unfinished / "macros.tex", macros(dataset))
    write_atomically(unfinished / "methods.tex", methods(dataset))
    write_atomically(unfinished / "results.tex", results(dataset))
    write_atomically(unfinished / "references.bib", _references(dataset))
    write_atomically(unfinished / "paper.tex", _document(dataset, floats))
    shutil.rmtree(paths.paper, ignore_errors=True)
    unfinished.rename(paths.paper)
    return paths.paper


def _write_tables(dataset: Dataset, folder: Path) -> Iterator[str]:
    """Write the tables of the study's questions that have a number; yield how a document includes each."""
    for question, makers in TABLES.items():
        for make in makers if question in ("", *dataset.plan.questions) else ():
            table = for_paper(dataset, make(dataset))
            if has_numbers(table):
                name = f"tables/{table.name}.tex"
                write_atomically(folder / name, latex_table(table))
                if table.name not in _included_elsewhere(dataset):
                    yield f"\\input{{{name}}}"


def _included_elsewhere(dataset: Dataset) -> tuple[str, ...]:
    """Return the tables whose numbers the document has in another one."""
    return ("measured",) if "scaling" in dataset.plan.questions else ()


def _write_figures(dataset: Dataset, folder: Path) -> Iterator[str]:
    """Write the figures of the study's questions; yield how a document includes each."""
    (folder / "figures").mkdir(parents=True)
    for question, make in FIGURES.items():
        for figure in make(dataset) if question in ("", *dataset.plan.questions) else ():
            if figure.drawing is not None:
                names = [figure.write_pdf(folder / "figures", width) for width in WIDTHS]
                yield _figure_float(dataset, figure, *names)


def _figure_float(dataset: Dataset, figure: Figure, for_page: str, for_column: str) -> str:
    """Return a figure as wide as a column, unless that drawing is so high that the one for a page is better."""
    column_drawing = figure.drawn(COLUMN)
    is_low = column_drawing is not None and column_drawing.get_figheight() <= _COLUMN_INCHES
    kind, name, unused_name = ("figure", for_column, for_page) if is_low else ("figure*", for_page, for_column)
    explanation = f"{figure.page_caption or figure.caption}{context.quick_label(dataset)}"
    caption = f"\\textbf{{{latex_escaped(figure.title)}.}} {latex_escaped(explanation)}"
    lines = (
        f"\\begin{{{kind}}}",
        r"\centering",
        f"\\includegraphics{{figures/{name}}}% in the other width: figures/{unused_name}",
        f"\\caption{{{caption}}}",
    )
    return "\n".join([*lines, f"\\label{{fig:{figure.name}}}", f"\\end{{{kind}}}"])


def _references(dataset: Dataset) -> str:
    """Return what to cite: this package, in the version that made the numbers, and the sources of its statistics."""
    begun = context.completed_runs(dataset)["started"].dropna()
    year = str(begun.max())[:4] if len(begun) else ""
    return _filled("references.bib", VERSION=__version__, YEAR=year)


def _document(dataset: Dataset, floats: list[str]) -> str:
    """Return a document of two columns with everything in it."""
    return _filled(
        "paper.tex",
        TITLE=latex_escaped(dataset.plan.title),
        FLOATS="\n".join(floats),
    )


def _filled(template: str, **values: str) -> str:
    """Return a template with its placeholders, as ``@TITLE@``, replaced."""
    content = (TEMPLATES / template).read_text(encoding="utf-8")
    for name, value in values.items():
        content = content.replace(f"@{name}@", value)
    return content
