"""The folder of a study for a paper: figures, tables, macros, methods, references and a document."""

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from dlperf_study import __version__
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import counted
from dlperf_study.core.writing import write_atomically
from dlperf_study.dataset.dataset import Dataset, up_to_date
from dlperf_study.report import context, figures, macros, methods, tables
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import COLUMN, PAGE, WIDTHS, Width
from dlperf_study.report.formatting import MISSING, latex_escaped, text_if
from dlperf_study.report.say import captions
from dlperf_study.report.tables.latex import latex_table
from dlperf_study.report.tables.table import Cell, Table

#: Half a page: a drawing for a column that is higher has its drawing for a page in the document.
_COLUMN_INCHES = 4.5
#: What a page has beside a caption of ten lines, and beside one of two: in a column nothing that is higher is used.
_HIGHEST_INCHES, _HIGHEST_COLUMN_INCHES = 7.5, 9.0
TEMPLATES = Path(__file__).parent / "templates" / "paper"
TABLES: dict[str, tuple[Callable[[Dataset], Table], ...]] = {
    "": (tables.measured,),
    "scaling": (tables.scaling,),
    "communication": (tables.communication,),
    "comparison": (tables.comparison, tables.differences),
}
FIGURES: dict[str, Callable[[Dataset], Iterator[Figure]]] = {
    "": figures.overview,
    "scaling": figures.scaling,
    "communication": figures.communication,
    "comparison": figures.comparison,
}
_BRACKETS = "Brackets: 95 % CIs over runs."
_OF_ITSELF = "1"


def write_paper(paths: StudyPaths) -> Path:
    """Write the folder ``paper`` of a study anew; return it.

    Raises RecordError for a study without a plan, or without a completed run.
    """
    dataset = up_to_date(paths)
    # Failed runs say how they ended, and not with which messages of libraries.
    dataset = replace(dataset, runs=dataset.runs.assign(reason=None))
    if dataset.completed_runs.empty:
        raise RecordError(f"{paths.folder}: no run completed, so there is nothing to publish")
    if dataset.measured.empty:
        raise RecordError(f"{paths.folder}: no run has a throughput; state samples_per_step or batch_per_device")
    unfinished = paths.paper.with_name(".paper")
    shutil.rmtree(unfinished, ignore_errors=True)
    floats = [*_write_figures(dataset, unfinished), *_write_tables(dataset, unfinished)]
    write_atomically(unfinished / "macros.tex", macros.macros(dataset))
    prose = {"methods.tex": methods.methods(dataset), "results.tex": methods.results(dataset)}
    for name, paragraph in prose.items():
        write_atomically(unfinished / name, paragraph)
    begun = dataset.completed_runs["started"].dropna()
    year = text_if(len(begun), str(begun.max())[:4])
    cited = []
    for entry in _filled("references.bib", VERSION=__version__, YEAR=year).split("\n\n"):
        key = entry.partition("{")[2].partition(",")[0]
        if f"\\cite{{{key}}}" in "".join(prose.values()):
            cited.append(entry.strip())
    write_atomically(unfinished / "references.bib", ("\n\n".join(cited) + "\n"))
    document = _filled("paper.tex", TITLE=latex_escaped(dataset.plan.title), FLOATS="\n".join(floats))
    write_atomically(unfinished / "paper.tex", document)
    shutil.rmtree(paths.paper, ignore_errors=True)
    unfinished.rename(paths.paper)
    return paths.paper


def _write_tables(dataset: Dataset, folder: Path) -> Iterator[str]:
    """Write the tables with numbers; yield the line that includes each."""
    # Another table has its numbers too.
    included_elsewhere = text_if("scaling" in dataset.plan.sections, "measured")
    for question, makers in TABLES.items():
        for make in makers if question in ("", *dataset.plan.sections) else ():
            table = for_paper(dataset, make(dataset))
            if has_numbers(table):
                name = f"tables/{table.name}.tex"
                write_atomically(folder / name, latex_table(table, dataset.plan.study))
                if table.name != included_elsewhere:
                    yield f"\\input{{{name}}}"


def for_paper(dataset: Dataset, table: Table) -> Table:
    """Return a table without empty columns and with a short caption."""
    rows = [tuple(map(_without_diagnostics, row)) for row in table.rows]
    kept = []
    for position, heading in enumerate(table.headings):
        printed = {row[position].text for row in table.rows}
        is_ratio_to_itself = heading.interval and printed == {MISSING, _OF_ITSELF}
        if not printed <= {MISSING} and not is_ratio_to_itself:
            kept.append(position)
    headings = tuple(map(table.headings.__getitem__, kept))
    explanations, labels = captions()["columns of a paper"], map(attrgetter("label"), headings)
    sentences = list(filter(None, map(explanations.get, labels)))
    if any(cell.interval for row in table.rows for cell in row):
        sentences.append(_BRACKETS)
    return replace(
        table,
        caption=f"{' '.join(sentences)}{context.quick_label(dataset)}".strip(),
        headings=headings,
        rows=tuple(tuple(map(row.__getitem__, kept)) for row in rows),
        notes=tuple(_table_notes(table)),
    )


def has_numbers(table: Table) -> bool:
    """Return whether a column has measured numbers."""
    return any(heading.interval for heading in table.headings) and not table.is_empty


def _without_diagnostics(cell: Cell) -> Cell:
    """Return a cell whose only footnote is the missing interval's reason."""
    if cell.text == MISSING or cell.is_doubtful:
        return cell
    return replace(cell, footnote=cell.reason, further=())


def _table_notes(table: Table) -> Sequence[str]:
    """Return how many numbers have diagnostics, in one note."""
    cells = [cell for row in table.rows for cell in row if cell.text != MISSING]
    concerned = sum(cell.footnotes != _without_diagnostics(cell).footnotes for cell in cells)
    if not concerned:
        return []
    verb = "has" if concerned == 1 else "have"
    return [f"{counted(concerned, 'number')} of this table {verb} diagnostics."]


def _write_figures(dataset: Dataset, folder: Path) -> Iterator[str]:
    """Write the study's figures; yield the lines that include each."""
    (folder / "figures").mkdir(parents=True)
    for question, make in FIGURES.items():
        for figure in make(dataset) if question in ("", *dataset.plan.sections) else ():
            if figure.drawing is not None:
                names = {}
                for width in WIDTHS:
                    if width is PAGE or _inches(figure, width) <= _HIGHEST_COLUMN_INCHES:
                        names[width] = figure.write_pdf(folder / "figures", width)
                yield _figure_float(dataset, figure, names)


def _inches(figure: Figure, width: Width) -> float:
    drawing = figure.drawn(width)
    return float(drawing.get_figheight()) if drawing else math.inf


def _figure_float(dataset: Dataset, figure: Figure, names: Mapping[Width, str]) -> str:
    """Return a figure for a column, or a page if too high."""
    kind, width = ("figure", COLUMN) if _inches(figure, COLUMN) <= _COLUMN_INCHES else ("figure*", PAGE)
    unused = [f"in the other width: figures/{name}" for of_file, name in names.items() if of_file is not width]
    size = r"width=\columnwidth" if width is COLUMN else r"width=\textwidth"
    if width is PAGE and _inches(figure, PAGE) > _HIGHEST_INCHES:
        size = f"height={_HIGHEST_INCHES}in"
    explanation = f"{figure.page_caption or figure.caption}{context.quick_label(dataset)}"
    caption = f"\\textbf{{{latex_escaped(figure.title)}.}} {latex_escaped(explanation)}"
    lines = (
        f"\\begin{{{kind}}}",
        r"\centering",
        f"\\includegraphics[{size}]{{figures/{names[width]}}}% {''.join(unused) or 'too high for a column'}",
        f"\\caption{{{caption}}}",
    )
    return "\n".join([*lines, f"\\label{{fig:{dataset.plan.study}-{figure.name}}}", f"\\end{{{kind}}}"])


def _filled(template: str, **values: str) -> str:
    """Return a template with its placeholders, as ``@TITLE@``, replaced."""
    content = (TEMPLATES / template).read_text(encoding="utf-8")
    for name, value in values.items():
        content = content.replace(f"@{name}@", value)
    return content
