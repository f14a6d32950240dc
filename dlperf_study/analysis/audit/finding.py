"""What a check found: the cells it is about, the computation, how much it weighs, and what would be innocent."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dlperf_study.analysis.audit.cell import Cell
from dlperf_study.analysis.audit.results import Results
from dlperf_study.logs.complaint import Severity


@dataclass(frozen=True)
class Finding:
    """One doubt about numbers: ``computation`` says in words and numbers what was reckoned.

    ``explanations`` are the innocent ones: what may make the numbers right after all. ``check`` is the name of the
    check, filled in when it is run.
    """

    severity: Severity
    cells: tuple[Cell, ...]
    computation: str
    explanations: tuple[str, ...] = ()
    check: str = ""

    @property
    def accused(self) -> tuple[str, ...]:
        """The keys of the numbers it doubts, and of what these summarise; not of the rate a ratio is held against.

        A note without an innocent explanation accuses none: it says what could not be checked.
        """
        if self.severity is Severity.NOTE and not self.explanations:
            return ()
        accused = [cell for cell in self.cells if cell.key not in {other.baseline for other in self.cells}]
        keys = (key for cell in accused for key in (cell.key, str(cell.get("runs_of") or "")) if key)
        return tuple(dict.fromkeys(keys))


#: Yields one result for each thing examined: what was found, or None where nothing is wrong with it.
Examination = Callable[[Results], Iterator[Finding | None]]


@dataclass(frozen=True)
class Check:
    """A question to a table of results; its name is that of its file."""

    asks: str
    examines: str
    examine: Examination


@dataclass(frozen=True)
class Checked:
    """A check that was run: how many things it examined, and what it found."""

    name: str
    check: Check
    examined: int
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """Return how many findings weigh that much."""
        return sum(finding.severity is severity for finding in self.findings)


def weighed(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings so that the heaviest come first; alike ones keep their order."""
    order = list(reversed(Severity))
    return sorted(findings, key=lambda finding: order.index(finding.severity))
