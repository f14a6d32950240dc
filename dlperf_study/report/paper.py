r"""The folder of a study for a paper: figures, tables, macros, methods, references, and a document that shows them.

Every number is a macro: ``\measured{study}{configuration}{column}`` prints it as the tables do. A name that does not
exist is an error of the document, never an empty text.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlperf_study import __version__
from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import counted
from dlperf_study.core.writing import write_atomically
from dlperf_study.dataset.dataset import Dataset, up_to_date
from dlperf_study.metrics.columns import Summary, column_named, summarised
from dlperf_study.metrics.metric import MEANS
from dlperf_study.report import context, figures, tables
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import COLUMN, WIDTHS
from dlperf_study.report.methods import methods
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.latex import latex_escaped, latex_table
from dlperf_study.report.tables.table import Table
from dlperf_study.report.tables.table_builders import measured_column

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
    write_atomically(unfinished / "references.bib", _references(dataset))
    write_atomically(unfinished / "paper.tex", _document(dataset, floats))
    shutil.rmtree(paths.paper, ignore_errors=True)
    unfinished.rename(paths.paper)
    return paths.paper


def _write_tables(dataset: Dataset, folder: Path) -> Iterator[str]:
    """Write the tables of the study's questions; yield how a document includes each."""
    for question, makers in TABLES.items():
        for make in makers if question in ("", *dataset.plan.questions) else ():
            table = make(dataset)
            if table.rows:
                name = f"tables/{table.name}.tex"
                # The methods say of all what captions and notes say: conditions, means, intervals and definitions.
                short = replace(table, caption=context.quick_label(dataset).strip(), notes=())
                write_atomically(folder / name, latex_table(short))
                yield f"\\input{{{name}}}"


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
    caption = f"\\textbf{{{latex_escaped(figure.title)}.}}{latex_escaped(context.quick_label(dataset))}"
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
        NUMBERS=" ".join(_numbers(dataset)),
        FLOATS="\n".join(floats),
    )


def _numbers(dataset: Dataset) -> Iterator[str]:
    """Yield a sentence on each measured configuration, which shows how macros are used."""
    study, keys, labels = dataset.plan.study, configuration_keys(dataset), configuration_labels(dataset)
    rows = context.measured(dataset)
    yield f"The study has {counted(len(rows), 'measured configuration')} and \\studyfact{{{study}}}{{runs}} runs."
    for identity in rows["identity"]:
        label = latex_escaped(labels[identity])
        yield f"{label}: \\measured{{{study}}}{{{keys[identity]}}}{{throughput}}."


def _filled(template: str, **values: str) -> str:
    """Return a template with its placeholders, as ``@TITLE@``, replaced."""
    content = (TEMPLATES / template).read_text(encoding="utf-8")
    for name, value in values.items():
        content = content.replace(f"@{name}@", value)
    return content


#: The columns of a configuration that are numbers with an interval, and verdicts.
QUANTITIES = (
    *summarised(Summary.GEOMETRIC),
    *("speedup", "speedup_as_measured", "efficiency"),
    *("relative_throughput", "relative_throughput_as_measured"),
    *summarised(*MEANS),
    *("computation_factor", "balance_factor", "input_factor", "communication_factor"),
    *("step_difference_seconds", "computation_difference_seconds", "exposed_difference_seconds"),
    *("baseline_verdict", "verdict"),
)
#: Defined once, however many studies a document has.
_DEFINITIONS = r"""\makeatletter
\providecommand{\dlperfnumber}[1]{\ifcsname dlperf@#1\endcsname\csname dlperf@#1\endcsname\else
  \PackageError{dlperf_study}{There is no number "#1"}{The names are in the comments of macros.tex.}\fi}
\providecommand{\measured}[3]{\dlperfnumber{#1/#2/#3}}
\providecommand{\measuredvalue}[3]{\dlperfnumber{#1/#2/#3/value}}
\providecommand{\studyfact}[2]{\dlperfnumber{#1/#2}}
"""


def macros(dataset: Dataset) -> str:
    """Return the file of macros: of each measured configuration and of the study, with comments that list the names."""
    lines = [_DEFINITIONS, *_study_macros(dataset)]
    labels, keys = configuration_labels(dataset), configuration_keys(dataset)
    for row in context.measured(dataset).itertuples(index=False):
        identity = str(row.identity)
        lines.append(f"% {labels[identity]}: {keys[identity]}")
        lines += _configuration_macros(dataset, row, keys[identity])
    return "\n".join([*lines, r"\makeatother"]) + "\n"


def configuration_keys(dataset: Dataset) -> dict[str, str]:
    """Return the name of each configuration in macros, by identity: without the digest where it is unique."""
    identities = dataset.configurations["identity"].tolist()
    counts = Counter(identity.rpartition("-")[0] for identity in identities)
    keys = {}
    for identity in identities:
        readable = identity.rpartition("-")[0]
        keys[identity] = readable if counts[readable] == 1 else identity
    return keys


def _study_macros(dataset: Dataset) -> Iterator[str]:
    runs = context.completed_runs(dataset)
    facts = {
        "configurations": str(len(context.measured(dataset))),
        "runs": str(len(runs)),
        "devices": context.levels(runs["device_name"]),
        "versions": context.versions(runs),
        "begun": str(runs["started"].dropna().min())[:10] if runs["started"].notna().any() else "date unknown",
    }
    for name, fact in facts.items():
        yield _macro(f"{dataset.plan.study}/{name}", latex_escaped(fact or "not stated"))


def _configuration_macros(dataset: Dataset, row: Any, key: str) -> Iterator[str]:
    """Yield the macros of what was measured of one configuration: with its interval and unit, and the value alone."""
    for name in QUANTITIES:
        column = measured_column(dataset, name)
        cell = column.cell(row)
        if cell.text and cell.text != cell.missing("").text:
            path = f"{dataset.plan.study}/{key}/{name}"
            value, unit = latex_escaped(cell.text), latex_escaped(column.heading.unit)
            printed = "~".join(filter(None, (value, unit, latex_escaped(cell.interval))))
            yield _macro(path, printed) + f" % {column_named(name).label}"
            yield _macro(f"{path}/value", value)


def _macro(path: str, content: str) -> str:
    return f"\\@namedef{{dlperf@{path}}}{{{content}}}"
