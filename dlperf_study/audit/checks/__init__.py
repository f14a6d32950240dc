"""Checks of the audit and their diagnostics.

Every ``@check`` function in the files of this folder is run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.core.errors import Severity, TableError
from dlperf_study.core.part_search import cached_by_parts
from dlperf_study.core.registry import part_modules
from dlperf_study.core.wording import unknown_name

#: Runs of one configuration that are further apart are a warning.
FAR_APART = 0.03


@dataclass(frozen=True)
class AuditDiagnostic:
    """A possible error in the numbers of ``cells``; ``computation`` is the evidence.

    ``explanations``: reasons why the numbers may be right. ``deviation``: relative deviation of the first number from
    its expected value, if that is one number. ``check``: name of the check; the audit fills it in. ``compared``:
    the results that were compared with each other, where they are not ``cells``.
    """

    severity: Severity
    cells: tuple[ResultCell, ...]
    computation: str
    explanations: tuple[str, ...] = ()
    check: str = ""
    deviation: float | None = None
    compared: tuple[ResultCell, ...] | None = None

    @property
    def keys(self) -> list[str]:
        """The keys of the numbers."""
        return [cell.key for cell in self.cells]

    @property
    def diagnosed(self) -> tuple[str, ...]:
        """The keys of suspect numbers and their summaries, without baselines."""
        if self.severity is Severity.NOTE and not self.explanations:
            return ()
        baselines = {cell.baseline for cell in self.cells}
        keys: dict[str, None] = {}
        for cell in self.cells:
            if cell.key not in baselines:
                keys[cell.key] = None
                keys[str(cell.get("runs_of") or cell.key)] = None
        return tuple(keys)


#: The results that agree with each other.
Agreeing = tuple[ResultCell, ...]
#: Yields one outcome for each item examined: a diagnostic, the results that agree, or None where nothing is wrong and
#: no result was compared with another.
Examination = Callable[[Results], Iterator[AuditDiagnostic | Agreeing | None]]


@dataclass(frozen=True)
class Check:
    """A question to a table of results.

    ``examines``: the items that are counted, in the plural. ``compares``: whether it recomputes results from other
    results; False if it compares them with limits, or only compares conditions.
    """

    name: str
    question: str
    examines: str
    examine: Examination
    compares: bool = True


def check(question: str, examines: str, compares: bool = True) -> Callable[[Examination], Check]:
    """Return a decorator that turns a function into a check."""

    def declare(examine: Examination) -> Check:
        return Check(examine.__name__, question, examines, examine, compares)

    return declare


@dataclass(frozen=True)
class AuditResult:
    """A finished check; ``compared``: the keys of the results it compared."""

    check: Check
    examined: int
    diagnostics: tuple[AuditDiagnostic, ...]
    compared: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the check."""
        return self.check.name

    def count(self, severity: Severity) -> int:
        """Return the number of diagnostics of a severity."""
        return sum(diagnostic.severity is severity for diagnostic in self.diagnostics)


def list_diagnostics(check_results: Iterable[AuditResult]) -> list[AuditDiagnostic]:
    """Return the diagnostics of all checks, errors first."""
    by_severity: dict[Severity, list[AuditDiagnostic]] = {severity: [] for severity in reversed(Severity)}
    for result in check_results:
        for diagnostic in result.diagnostics:
            by_severity[diagnostic.severity].append(diagnostic)
    return list(chain.from_iterable(by_severity.values()))


def names() -> tuple[str, ...]:
    """Return the names of all checks, in alphabetical order."""
    return tuple(_checks())


def load(name: str) -> Check:
    """Return a check by name; raises TableError if the name is unknown."""
    if name not in _checks():
        raise TableError(unknown_name("check is", name, "checks", names()))
    return _checks()[name]


def load_all() -> tuple[Check, ...]:
    """Return all checks, in the order of their names."""
    return tuple(_checks().values())


@cached_by_parts
def _checks() -> Mapping[str, Check]:
    """Load the checks of this folder and of the user's plugins."""
    checks: dict[str, Check] = {}
    for location, module in part_modules(__name__, "file of checks", TableError):
        declared = [part for part in vars(module).values() if isinstance(part, Check)]
        if not declared:
            raise TableError(f"{location.source}: it has no function with the decorator @check")
        for part in declared:
            if checks.setdefault(part.name, part) is not part:
                raise TableError(f"{location.source}: there is a check {part.name!r} already")
    return dict(sorted(checks.items()))


def relative_deviation(printed: float, expected: float) -> float | None:
    """Return |printed / expected − 1|; None if 0 is expected."""
    if not expected:
        return None
    return abs(printed / expected - 1)


def texts_phrase(cells: Iterable[ResultCell]) -> str:
    """Return the printed texts of some cells."""
    return ", ".join(cell.text for cell in cells)
