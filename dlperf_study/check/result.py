"""The results of a check: one row of its table each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dlperf_study.terminal import text_table


class CheckStatus(StrEnum):
    """Whether a study can run with what was found."""

    OK = "ok"
    NOTE = "note"
    UNTESTED = "untested"
    MISSING = "missing"


#: Runs may wait in a queue for a day; a check is watched by a person.
MAX_QUEUE_SECONDS = 600.0


@dataclass(frozen=True)
class CheckResult:
    """One thing a run needs: what was found of it and, where a person can fix it, what to do."""

    subject: str
    status: CheckStatus
    found: str
    remedy: str = ""


def ok(subject: str, found: str) -> CheckResult:
    """Return that something is as a run needs it."""
    return CheckResult(subject, CheckStatus.OK, found)


def note(subject: str, found: str, remedy: str) -> CheckResult:
    """Return that something may spoil some runs, or their numbers."""
    return CheckResult(subject, CheckStatus.NOTE, found, remedy)


def untested(subject: str, because: str) -> CheckResult:
    """Return that nothing is known of something, because what it needs is missing."""
    return CheckResult(subject, CheckStatus.UNTESTED, because)


def missing(subject: str, found: str, remedy: str) -> CheckResult:
    """Return that no run can do without something."""
    return CheckResult(subject, CheckStatus.MISSING, found, remedy)


def as_table(results: Sequence[CheckResult]) -> str:
    """Return the results as text, what to do below what it is about."""
    rows = []
    for result in results:
        rows.append((result.status.value, result.subject, result.found))
        if result.remedy:
            rows.append(("", "", f"-> {result.remedy}"))
    return text_table(("", "", ""), rows)


def queue_seconds(start_within_seconds: float) -> float:
    """Return how long a check waits in a queue, given how long a run may."""
    return min(MAX_QUEUE_SECONDS, start_within_seconds)
