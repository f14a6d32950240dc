"""What a check found: one row of its table each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Whether a study can run with what was found."""

    HOLDS = "holds"
    NOTE = "note"
    UNTRIED = "untried"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One thing a run needs: what was found of it and, where a person can mend it, what to do."""

    subject: str
    verdict: Verdict
    found: str
    remedy: str = ""


def holds(subject: str, found: str) -> Finding:
    """Return that something is as a run needs it."""
    return Finding(subject, Verdict.HOLDS, found)


def note(subject: str, found: str, remedy: str) -> Finding:
    """Return that something may spoil some runs, or their numbers."""
    return Finding(subject, Verdict.NOTE, found, remedy)


def untried(subject: str, because: str) -> Finding:
    """Return that nothing is known of something, because what it needs is missing."""
    return Finding(subject, Verdict.UNTRIED, because)


def missing(subject: str, found: str, remedy: str) -> Finding:
    """Return that no run can do without something."""
    return Finding(subject, Verdict.MISSING, found, remedy)


def as_table(findings: Sequence[Finding]) -> str:
    """Return the findings as text, what to do below what it is about."""
    width = max((len(finding.subject) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{finding.verdict:<8} {finding.subject:<{width}}  {finding.found}")
        if finding.remedy:
            lines.append(f"{'':<8} {'':<{width}}  -> {finding.remedy}")
    return "\n".join(lines)
