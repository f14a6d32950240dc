"""Whether a self-test passed."""

from collections.abc import Iterator
from dataclasses import dataclass

from dlperf_study.selftest.result import SelftestResult, Status


@dataclass(frozen=True)
class SelftestOutcome:
    """How many of the checks that were made passed."""

    passed: int
    total: int
    is_passed: bool


@dataclass(frozen=True)
class SelftestChecks:
    """The names of the checks that ended with one status other than passed."""

    status: Status
    names: tuple[str, ...]


@dataclass(frozen=True)
class SelftestPower:
    """How often a correct instrument fails, and which errors are detected."""

    text: str


@dataclass(frozen=True)
class SelftestQuick:
    """A self-test in quick mode."""


def page(result: SelftestResult) -> Iterator[object]:
    """Yield the result, and the checks that did not pass."""
    yield SelftestOutcome(len(result.list_names(Status.PASSED)), len(result.done), result.passed)
    for status in (Status.FAILED, Status.UNDECIDED, Status.SKIPPED):
        names = tuple(result.list_names(status))
        if names:
            yield SelftestChecks(status, names)
    if result.power:
        yield SelftestPower(result.power)
    if result.quick:
        yield SelftestQuick()
