"""All checks over a table of results, and their diagnostics as text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from dlperf_study.audit import checks
from dlperf_study.audit.audit_check import AuditDiagnostic, AuditResult, diagnostics_of, most_severe_first
from dlperf_study.audit.results import Results, grouped
from dlperf_study.diagnostic import Severity
from dlperf_study.terminal import text_table
from dlperf_study.wording import counted, first_of

#: How many cells of a diagnostic are listed at most.
MOST_CELLS = 3
#: How many diagnostics of one check and severity are printed at most, unless all are wanted.
MOST_OF_A_KIND = 20
#: Checks that compare a number with a limit or a list, and not with the numbers next to it.
_OF_SINGLE_NUMBERS = ("sign", "durations", "wholes", "known_names")


def audit(results: Results) -> list[AuditResult]:
    """Run every check."""
    check_results = []
    for name in checks.names():
        check = checks.load(name)
        examined = list(check.examine(results))
        diagnostics = filter(None, examined)
        merged = []
        # Several tables may have the same numbers: diagnostics with the same computation become one, with all cells.
        for group in grouped(diagnostics, lambda diagnostic: diagnostic.computation).values():
            cells = dict.fromkeys(chain.from_iterable(diagnostic.cells for diagnostic in group))
            merged.append(replace(group[0], check=name, cells=tuple(cells)))
        check_results.append(AuditResult(name, check, len(examined), tuple(merged)))
    return check_results


def uncompared_tables(results: Results) -> list[str]:
    """Return the names of the tables in which no check compares two numbers."""
    names = []
    for name, cells in grouped(results.cells, lambda cell: str(cell.get("table") or cell.get("source") or "")).items():
        table = Results(tuple(cells))
        comparing = (checks.load(check) for check in checks.names() if check not in _OF_SINGLE_NUMBERS)
        if not any(True for check in comparing for _ in check.examine(table)):
            names.append(name)
    return names


def describe(check_results: Sequence[AuditResult], with_all: bool = False) -> str:
    """Return the diagnostics, errors first: all, or some of those that are alike; then what each check examined."""
    diagnostics = diagnostics_of(check_results)
    paragraphs = []
    for diagnostic in most_severe_first(diagnostics) if with_all else _some_of_each(diagnostics):
        paragraph = f"{diagnostic.severity} ({diagnostic.check}): {diagnostic.computation}\n"
        paragraph += f"  cells: {cited_cells(diagnostic)}"
        if diagnostic.explanations:
            paragraph += f"\n  possible explanations: {'; or '.join(diagnostic.explanations)}"
        paragraphs.append(paragraph)
    paragraphs += [] if with_all else _left_out(diagnostics)
    return "\n\n".join([*paragraphs, _what_was_examined(check_results)])


def _what_was_examined(check_results: Sequence[AuditResult]) -> str:
    """Return a table of the checks that examined something, and a line that names the others."""
    headings = ("check", "question", "examined", "examines", "result")
    rows: list[tuple[str, ...]] = []
    idle = []
    for result in check_results:
        check = result.check
        if result.examined:
            rows.append((result.name, check.question, str(result.examined), check.examines, severity_counts(result)))
        else:
            idle.append(result.name)
    table = [text_table(headings, rows)] if rows else []
    return "\n".join([*table, *([f"nothing to examine: {', '.join(idle)}"] if idle else [])])


def content(check_results: Sequence[AuditResult]) -> dict[str, Any]:
    """Return what each check examined and every diagnostic, for JSON."""
    listed = []
    for diagnostic in most_severe_first(diagnostics_of(check_results)):
        described = {
            "severity": diagnostic.severity,
            "check": diagnostic.check,
            "computation": diagnostic.computation,
            "explanations": diagnostic.explanations,
            "cells": diagnostic.keys,
        }
        listed.append(described)
    examined = [{"check": result.name, "examined": result.examined} for result in check_results]
    return {"checks": examined, "diagnostics": listed}


def _by_kind(diagnostics: Iterable[AuditDiagnostic]) -> dict[tuple[Severity, str], list[AuditDiagnostic]]:
    return grouped(most_severe_first(diagnostics), lambda diagnostic: (diagnostic.severity, diagnostic.check))


def _some_of_each(diagnostics: Iterable[AuditDiagnostic]) -> Iterator[AuditDiagnostic]:
    for group in _by_kind(diagnostics).values():
        yield from group[:MOST_OF_A_KIND]


def _left_out(diagnostics: Iterable[AuditDiagnostic]) -> Iterator[str]:
    for (severity, check), group in _by_kind(diagnostics).items():
        if len(group) > MOST_OF_A_KIND:
            yield f"{counted(len(group) - MOST_OF_A_KIND, severity.value)} ({check}) more: --all prints them"


def cited_cells(diagnostic: AuditDiagnostic) -> str:
    """Return the keys of the first cells of a diagnostic."""
    return first_of(diagnostic.keys, MOST_CELLS, "; ")


def severity_counts(result: AuditResult) -> str:
    """Return how many diagnostics of each severity a check has: ``1 error, 2 notes``."""
    if not result.examined:
        return "nothing to examine"
    counts = []
    for severity in reversed(Severity):
        if count := result.count(severity):
            counts.append(counted(count, severity.value))
    return ", ".join(counts) or "nothing found"
