"""All checks over a table of results."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dlperf_study.audit import checks
from dlperf_study.audit.check import Checked, Finding, weighed
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity
from dlperf_study.wording import first_of

# What the checks found, as text for the command line.


#: So many cells are cited at most; the first is the one that is diagnosed.
MOST_CELLS = 3


def describe(checked: Sequence[Checked]) -> str:
    """Return what each check examined, then every finding, the heaviest first."""
    findings = weighed(finding for check in checked for finding in check.findings)
    return "\n\n".join(["\n".join(map(_check, checked)), *map(_finding, findings)])


def cited(finding: Finding) -> str:
    """Return the places of a finding's cells."""
    return first_of([cell.key for cell in finding.cells], MOST_CELLS, "; ")


def counts(check: Checked) -> str:
    """Return in words how much a check found."""
    found = [(check.count(severity), severity.value) for severity in reversed(Severity)]
    said = [f"{number} {word}{'s' * (number > 1)}" for number, word in found if number]
    if not check.examined:
        return "nothing to examine"
    return ", ".join(said) or "nothing found"


def _check(check: Checked) -> str:
    examines = check.check.examines
    return f"{check.name}: {check.check.asks} {examines[0].upper()}{examines[1:]}: {check.examined}; {counts(check)}"


def _finding(finding: Finding) -> str:
    return "\n".join(_lines(finding))


def _lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity} ({finding.check}): {finding.computation}"
    yield f"  cells: {cited(finding)}"
    if finding.explanations:
        yield f"  innocent if: {'; or '.join(finding.explanations)}"


def audit(results: Results) -> list[Checked]:
    """Run every check; what it found bears its name."""
    return [_checked(name, results) for name in checks.names()]


def _checked(name: str, results: Results) -> Checked:
    check = checks.load(name)
    examined = list(check.examine(results))
    found = [replace(finding, check=name) for finding in examined if finding is not None]
    return Checked(name, check, len(examined), tuple(_once(found)))


def _once(findings: list[Finding]) -> Iterator[Finding]:
    """Yield what was said of several cells once, with all of them: the same numbers may stand in several tables."""
    for group in grouped(findings, lambda finding: finding.computation).values():
        cells = dict.fromkeys(cell for finding in group for cell in finding.cells)
        yield replace(group[0], cells=tuple(cells))
