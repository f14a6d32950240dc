"""Tables of the audit: what each check examined, and its diagnostics."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dlperf_study.audit.audit import cited_cells, own_results, published_results, severity_counts
from dlperf_study.audit.checks import AuditDiagnostic, AuditResult, list_diagnostics
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import in_words, integer, listed, text_if
from dlperf_study.report.say import caption
from dlperf_study.report.tables.table import Cell, Heading, Link, Page, Table, make_table

PAGE = Page.answering("audit")
_OURS, _PUBLISHED = "audit-own-diagnostics", "audit-published-diagnostics"


def measured_here(dataset: Dataset) -> Iterator[Table]:
    """Yield the checks of the study's own configurations, and the diagnostics."""
    results = own_results(dataset)
    about = caption("audit-own") + context.quick_label(dataset)
    yield _check_table(results, "audit-own", about)
    yield _diagnostic_table(_anchor_diagnostics(results, _OURS), _OURS, about)


def published(dataset: Dataset) -> Iterator[Table]:
    """Yield the same for the published sources that the study names."""
    results = published_results(dataset)
    about = empty = context.no_sources(dataset)
    if names := dataset.plan.published:
        about, empty = f"The sources {listed(names)}.", ""
    yield _check_table(results, "audit-published", about)
    yield _diagnostic_table(_anchor_diagnostics(results, _PUBLISHED), _PUBLISHED, about, empty)


def _anchor_diagnostics(results: Sequence[AuditResult], name: str) -> list[tuple[str, AuditDiagnostic]]:
    """Return all diagnostics, each with its anchor on the audit's page."""
    diagnostics = list_diagnostics(results)
    return [(f"{name}-{position}", diagnostic) for position, diagnostic in enumerate(diagnostics, 1)]


def _check_table(results: Sequence[AuditResult], name: str, about: str) -> Table:
    rows, idle = [], []
    for result in results:
        check = result.check
        if result.examined:
            rows.append((check.question, integer(result.examined), check.examines, severity_counts(result)))
        else:
            idle.append(in_words(check.name))
    notes = filter(None, (caption("audit", "severities"), text_if(idle, f"Nothing to examine: {', '.join(idle)}.")))
    headings = ("Check", Heading.number("Examined"), "Of what", "Result")
    return make_table(name, headings, rows, about, notes=notes, empty=about)


def _diagnostic_table(
    diagnostics: Sequence[tuple[str, AuditDiagnostic]], name: str, about: str, empty: str = ""
) -> Table:
    rows = []
    for anchor, diagnostic in diagnostics:
        explanations = "; or ".join(diagnostic.explanations)
        footnote = text_if(explanations, f"Possible explanations: {explanations}.")
        # LaTeX breaks lines at spaces only.
        cells = cited_cells(diagnostic).replace("/", " / ")
        computation = Cell(diagnostic.computation, footnote=footnote)
        rows.append((Cell(diagnostic.severity, anchor=anchor), in_words(diagnostic.check), computation, cells))
    in_file = about + text_if(rows, f" {caption('audit', 'explanations')}")
    return make_table(name, ("Severity", "Check", "Computation", "Cells"), rows, in_file, empty=empty)


def audit_links(dataset: Dataset) -> dict[str, list[Link]]:
    """Return links to the diagnostics of published numbers, by number."""
    has_page = PAGE.notebook in dataset.plan.sections
    links: dict[str, list[Link]] = defaultdict(list)
    for anchor, diagnostic in _anchor_diagnostics(published_results(dataset), _PUBLISHED):
        target = text_if(has_page, f"{PAGE.file}#{anchor}")
        link = Link(f"audit, {diagnostic.severity}: {diagnostic.computation}", target)
        for key in diagnostic.diagnosed:
            links[key].append(link)
    return links
