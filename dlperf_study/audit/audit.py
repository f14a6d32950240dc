"""All checks over a table of results, and their diagnostics as text."""

from collections.abc import Sequence
from dataclasses import replace

from dlperf_study.audit import checks
from dlperf_study.audit.audit_check import AuditDiagnostic, AuditResult, most_severe_first
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity
from dlperf_study.terminal import text_table
from dlperf_study.wording import counted, first_of

#: How many cells of a diagnostic are listed at most.
MOST_CELLS = 3


def audit(results: Results) -> list[AuditResult]:
    """Run every check."""
    check_results = []
    for name in checks.names():
        check = checks.load(name)
        examined = list(check.examine(results))
        diagnostics = [diagnostic for diagnostic in examined if diagnostic is not None]
        merged = []
        # Several tables may have the same numbers: diagnostics with the same computation become one, with all cells.
        for group in grouped(diagnostics, lambda diagnostic: diagnostic.computation).values():
            cells = dict.fromkeys(cell for diagnostic in group for cell in diagnostic.cells)
            merged.append(replace(group[0], check=name, cells=tuple(cells)))
        check_results.append(AuditResult(name, check, len(examined), tuple(merged)))
    return check_results


def describe(check_results: Sequence[AuditResult]) -> str:
    """Return what each check examined, then every diagnostic, errors first."""
    headings = ("check", "question", "examined", "examines", "result")
    rows: list[tuple[str, ...]] = []
    diagnostics: list[AuditDiagnostic] = []
    for result in check_results:
        check = result.check
        rows.append((result.name, check.question, str(result.examined), check.examines, severity_counts(result)))
        diagnostics.extend(result.diagnostics)
    paragraphs = [text_table(headings, rows)]
    for diagnostic in most_severe_first(diagnostics):
        paragraph = f"{diagnostic.severity} ({diagnostic.check}): {diagnostic.computation}\n"
        paragraph += f"  cells: {cited_cells(diagnostic)}"
        if diagnostic.explanations:
            paragraph += f"\n  possible explanations: {'; or '.join(diagnostic.explanations)}"
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def cited_cells(diagnostic: AuditDiagnostic) -> str:
    """Return the keys of the first cells of a diagnostic."""
    return first_of([cell.key for cell in diagnostic.cells], MOST_CELLS, "; ")


def severity_counts(result: AuditResult) -> str:
    """Return how many diagnostics of each severity a check has: ``1 error, 2 notes``."""
    if not result.examined:
        return "nothing to examine"
    counts = []
    for severity in reversed(Severity):
        if count := result.count(severity):
            counts.append(counted(count, severity.value))
    return ", ".join(counts) or "nothing found"
