"""Try everything a run on a cluster needs, before the first one: the results, one row of a table each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dlperf_study.core.terminal import text_table


class CheckStatus(StrEnum):
    """Whether a study can run with the result."""

    OK = "ok"
    NOTE = "note"
    UNTESTED = "untested"
    MISSING = "missing"


#: Runs may wait in a queue for a day; a check is watched by a person.
MAX_QUEUE_SECONDS = 600.0


@dataclass(frozen=True)
class CheckResult:
    """The state of one thing that a run needs."""

    subject: str
    status: CheckStatus
    detail: str
    remedy: str = ""


def ok(subject: str, detail: str) -> CheckResult:
    """Return that something is as a run needs it."""
    return CheckResult(subject, CheckStatus.OK, detail)


def note(subject: str, detail: str, remedy: str) -> CheckResult:
    """Return that something may spoil some runs, or their numbers."""
    return CheckResult(subject, CheckStatus.NOTE, detail, remedy)


def untested(subject: str, because: str) -> CheckResult:
    """Return that something can't be tested."""
    return CheckResult(subject, CheckStatus.UNTESTED, because)


def missing(subject: str, detail: str, remedy: str) -> CheckResult:
    """Return that no run can do without something."""
    return CheckResult(subject, CheckStatus.MISSING, detail, remedy)


def describe(results: Sequence[CheckResult]) -> str:
    """Return the results as text, with remedies."""
    rows = []
    for result in results:
        rows.append((result.status.value, result.subject, result.detail))
        if result.remedy:
            rows.append(("", "", f"-> {result.remedy}"))
    return text_table(("", "", ""), rows)


def queue_seconds(start_within_seconds: float) -> float:
    """Return how long a check waits in a queue."""
    return min(MAX_QUEUE_SECONDS, start_within_seconds)
