"""Results of self-tests, in one file of the outputs folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import SELFTEST, StudyPaths
from dlperf_study.core.user_commands import make_command
from dlperf_study.core.writing import write_atomically
from dlperf_study.study.record_types import FormatNumber
from dlperf_study.study.validation import PastTime, parse_object, read_text_file, validate_record

FORMAT = 1


class Status(StrEnum):
    """Status of a check: undecided with too few runs, skipped if impossible."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Machine:
    """Host name, processor and usable logical cores."""

    host: str
    cpu_model: str
    cores: int


@dataclass(frozen=True)
class Comparison:
    """A measured number next to the true one.

    ``kind``: what was compared; ``label``: which one. ``low`` and ``high``: bounds of its interval, or None.
    ``significance``: of a ratio in a report, or empty. ``equal_within``: the share within which the two sides are
    equal, or None.
    """

    kind: str
    label: str
    true: float
    measured: float
    low: float | None
    high: float | None
    significance: str = ""
    equal_within: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The two bounds of its interval; None where it has none."""
        if self.low is None or self.high is None:
            return None
        return self.low, self.high

    @property
    def holds_truth(self) -> bool:
        """Whether it has an interval, and the true value is inside."""
        return self.interval is not None and self.interval[0] <= self.true <= self.interval[1]


@dataclass(frozen=True)
class CheckResult:
    """Requirement, observation and comparisons of a check, or why skipped."""

    name: str
    requirement: str
    status: Status
    seen: str
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class SelftestResult:
    """One self-test: when it ended (ISO 8601), where, with which code.

    ``code`` is the digest of the code that measured, ``analysis_code`` of the code that made significance tests of it;
    empty in older results. ``quick``: in quick mode, or with fewer pairs than the full one. ``power``: how often the
    checks of pairs fail a correct instrument, and which errors they find.
    """

    ended: PastTime
    machine: Machine
    code: str
    quick: bool
    checks: tuple[CheckResult, ...]
    analysis_code: str = ""
    power: str = ""

    @property
    def done(self) -> tuple[CheckResult, ...]:
        """The checks that were not skipped."""
        return tuple(check for check in self.checks if check.status is not Status.SKIPPED)

    def list_names(self, status: Status) -> list[str]:
        """Return the names of the checks that ended so."""
        return [check.name for check in self.checks if check.status is status]

    @property
    def undecided(self) -> bool:
        """Whether a check has too few runs."""
        return bool(self.list_names(Status.UNDECIDED))

    @property
    def passed(self) -> bool:
        """Whether at least one check ran, and all of these passed."""
        return bool(self.done) and all(check.status is Status.PASSED for check in self.done)


@with_config(ConfigDict(allow_inf_nan=False))
class _ResultsFile(TypedDict):
    format: Annotated[int, FormatNumber(FORMAT)]
    results: list[SelftestResult]


_RESULTS_FILE = TypeAdapter(_ResultsFile)


def results_file() -> Path:
    """Return the file of all results of this outputs folder."""
    return StudyPaths.of(SELFTEST).selftest_results


def read_results() -> list[SelftestResult]:
    """Return all self-tests of this outputs folder, the oldest first."""
    file = results_file()
    if not file.exists():
        return []
    try:
        content = parse_object(read_text_file(file), str(file))
        return validate_record(_RESULTS_FILE, content, str(file))["results"]
    except RecordError as error:
        raise RecordError(f"{error}; delete the file, and run the self-test again") from error


def last_result() -> SelftestResult:
    """Return the latest self-test; raises RecordError without one."""
    results = read_results()
    if not results:
        raise RecordError(f"{results_file()}: no self-test was completed; `{make_command('selftest')}` runs one")
    return results[-1]


def add_result(result: SelftestResult) -> None:
    """Add a result to the file atomically."""
    results = [asdict(previous) for previous in (*read_results(), result)]
    write_atomically(results_file(), json.dumps({"format": FORMAT, "results": results}, indent=1) + "\n")


def last_not_passed(
    results: Sequence[SelftestResult], machine: Machine, after: SelftestResult | None
) -> SelftestResult | None:
    """Return a machine's latest failed result after ``after``, or None."""
    not_passed = []
    for result in results:
        if not result.passed and result.machine == machine:
            not_passed.append(result)
    latest = max(not_passed, key=_end, default=None)
    if latest is None or (after is not None and _end(latest) <= _end(after)):
        return None
    return latest


def last_passed(results: Sequence[SelftestResult], machine: Machine) -> SelftestResult | None:
    """Return a machine's latest passed result, preferring full ones."""
    passed = [result for result in results if result.passed and result.machine == machine]
    return max(passed, key=lambda result: (not result.quick, _end(result)), default=None)


def _end(result: SelftestResult) -> datetime:
    return datetime.fromisoformat(result.ended)
