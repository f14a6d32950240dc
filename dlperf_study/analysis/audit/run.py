"""All checks over a table of results."""

from collections.abc import Iterator
from dataclasses import replace

from dlperf_study.analysis.audit import checks
from dlperf_study.analysis.audit.finding import Checked, Finding
from dlperf_study.analysis.audit.results import Results, grouped


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
