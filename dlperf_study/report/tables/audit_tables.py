"""Tables of the audit: what each check examined, and its diagnostics."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dlperf_study.audit.audit import cited_cells, own_results, published_results, severity_counts
from dlperf_study.audit.checks import AuditDiagnostic, AuditResult, list_diagnostics, most_severe_first
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.context import NO_SOURCES, quick_label
from dlperf_study.report.formatting import in_words, integer, listed
from dlperf_study.report.tables.table import Cell, Heading, Link, Page, Table

_SEVERITIES = (
    "Error: the number contradicts others next to it. Warning: it is probably wrong. Note: worth knowing; "
    "nothing need be wrong."
)
_EXPLANATIONS = "Nothing was corrected; the letters lead to possible explanations, with which the numbers are right."
PAGE = Page.answering("audit")
_OURS, _PUBLISHED = "audit-own-diagnostics", "audit-published-diagnostics"


def ours(dataset: Dataset) -> Iterator[Table]:
    """Yield the checks of the study's own configurations, and the diagnostics."""
    results = own_results(dataset)
    caption = f"The configurations and runs of this study.{quick_label(dataset)}"
    yield _check_table(results, "audit-own", "Checks of our numbers", caption)
    empty = "The audit has no diagnostic about our numbers."
    yield _diagnostic_table(_anchor_diagnostics(results, _OURS), _OURS, "Diagnostics of our numbers", caption, empty)


def published(dataset: Dataset) -> Iterator[Table]:
    """Yield the same for the published sources that the study names."""
    names = dataset.plan.published
    results = published_results(dataset)
    caption = NO_SOURCES
    if names:
        caption = f"The sources {listed(names)}."
    yield _check_table(results, "audit-published", "Checks of the published numbers", caption)
    empty = NO_SOURCES
    if names:
        empty = "The audit has no diagnostic about the published numbers."
    diagnostics = _anchor_diagnostics(results, _PUBLISHED)
    yield _diagnostic_table(diagnostics, _PUBLISHED, "Diagnostics of the published numbers", caption, empty)


def _anchor_diagnostics(results: Sequence[AuditResult], name: str) -> list[tuple[str, AuditDiagnostic]]:
    """Return all diagnostics, each with its anchor on the audit's page."""
    diagnostics = most_severe_first(list_diagnostics(results))
    return [(f"{name}-{position}", diagnostic) for position, diagnostic in enumerate(diagnostics, 1)]


def _check_table(results: Sequence[AuditResult], name: str, title: str, caption: str) -> Table:
    headings = (Heading("Check"), Heading("Examined", numeric=True), Heading("Of what"), Heading("Result"))
    rows, idle = [], []
    for result in results:
        if not result.examined:
            idle.append(in_words(result.check.name))
            continue
        examined, examines = Cell(integer(result.examined)), Cell(result.check.examines)
        rows.append((Cell(result.check.question), examined, examines, Cell(severity_counts(result))))
    notes = (_SEVERITIES, *([f"Nothing to examine: {', '.join(idle)}."] if idle else []))
    return Table(name, title, caption, headings, tuple(rows), notes, empty=caption)


def _diagnostic_table(
    diagnostics: Sequence[tuple[str, AuditDiagnostic]], name: str, title: str, caption: str, empty: str
) -> Table:
    headings = tuple(map(Heading, ("Severity", "Check", "Computation", "Cells")))
    rows = []
    for anchor, diagnostic in diagnostics:
        explanations = "; or ".join(diagnostic.explanations)
        footnote = ""
        if explanations:
            footnote = f"Possible explanations: {explanations}."
        # LaTeX breaks lines at spaces only.
        cells = cited_cells(diagnostic).replace("/", " / ")
        computation = Cell(diagnostic.computation, footnote=footnote)
        check = Cell(in_words(diagnostic.check))
        rows.append((Cell(diagnostic.severity, anchor=anchor), check, computation, Cell(cells)))
    whole_caption = caption
    if rows:
        whole_caption = f"{caption} {_EXPLANATIONS}"
    return Table(name, title, whole_caption, headings, tuple(rows), empty=empty)


def audit_links(dataset: Dataset) -> dict[str, list[Link]]:
    """Return links to the diagnostics of published numbers, by number."""
    page = ""
    if PAGE.notebook in dataset.plan.questions:
        page = PAGE.file
    links: dict[str, list[Link]] = defaultdict(list)
    for anchor, diagnostic in _anchor_diagnostics(published_results(dataset), _PUBLISHED):
        target = ""
        if page:
            target = f"{page}#{anchor}"
        link = Link(f"audit, {diagnostic.severity}: {diagnostic.computation}", target)
        for key in diagnostic.diagnosed:
            links[key].append(link)
    return links
