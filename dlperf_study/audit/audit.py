"""All checks over a table of results."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dlperf_study.audit import checks
from dlperf_study.audit.audit_check import AuditDiagnostic, CheckResult, most_severe_first
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity
from dlperf_study.terminal import text_table
from dlperf_study.wording import first_of

# What the checks found, as text for the command line.


#: So many cells are cited_cells at most; the first is the one that is diagnosed.
MOST_CELLS = 3


def describe(checked: Sequence[CheckResult]) -> str:
    """Return what each check examined, then every diagnostic, the heaviest first."""
    diagnostics = most_severe_first(diagnostic for check in checked for diagnostic in check.diagnostics)
    return "\n\n".join([_checks(checked), *map(_finding, diagnostics)])


def cited_cells(diagnostic: AuditDiagnostic) -> str:
    """Return the places of a diagnostic's cells."""
    return first_of([cell.key for cell in diagnostic.cells], MOST_CELLS, "; ")


def severity_counts(check: CheckResult) -> str:
    """Return in words how much a check found."""
    found = [(check.count(severity), severity.value) for severity in reversed(Severity)]
    said = [f"{number} {word}{'s' * (number > 1)}" for number, word in found if number]
    if not check.examined:
        return "nothing to examine"
    return ", ".join(said) or "nothing found"


def _checks(checked: Sequence[CheckResult]) -> str:
    headings = ("check", "question", "examined", "examines", "result")
    rows = []
    for result in checked:
        check = result.check
        rows.append((result.name, check.question, str(result.examined), check.examines, severity_counts(result)))
    return text_table(headings, rows)


def _finding(diagnostic: AuditDiagnostic) -> str:
    return "\n".join(_lines(diagnostic))


def _lines(diagnostic: AuditDiagnostic) -> Iterator[str]:
    yield f"{diagnostic.severity} ({diagnostic.check}): {diagnostic.computation}"
    yield f"  cells: {cited_cells(diagnostic)}"
    if diagnostic.explanations:
        yield f"  innocent if: {'; or '.join(diagnostic.explanations)}"


def audit(results: Results) -> list[CheckResult]:
    """Run every check; what it found bears its name."""
    return [_checked(name, results) for name in checks.names()]


def _checked(name: str, results: Results) -> CheckResult:
    check = checks.load(name)
    examined = list(check.examine(results))
    found = [replace(diagnostic, check=name) for diagnostic in examined if diagnostic is not None]
    return CheckResult(name, check, len(examined), tuple(_once(found)))


def _once(diagnostics: list[AuditDiagnostic]) -> Iterator[AuditDiagnostic]:
    """Yield what was said of several cells once, with all of them: the same numbers may stand in several tables."""
    for group in grouped(diagnostics, lambda diagnostic: diagnostic.computation).values():
        cells = dict.fromkeys(cell for diagnostic in group for cell in diagnostic.cells)
        yield replace(group[0], cells=tuple(cells))
