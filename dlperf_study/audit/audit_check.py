"""What a check found: the cells it is about, the computation, how much it weighs, and what would be innocent."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dlperf_study.analysis.scaling import MARGIN
from dlperf_study.audit.limits import Peak, Work, needed
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Rate, Results
from dlperf_study.columns import PRODUCTS
from dlperf_study.diagnostic import Severity

# Sentences that several checks say.


def step(fewer: Rate, more: Rate) -> str:
    """Return a step of a curve in words and numbers."""
    name = "rate" if fewer.cell.metric == THROUGHPUT else fewer.cell.metric
    rise, devices = more.cell.value / fewer.cell.value, more.point.devices / fewer.point.devices
    return (
        f"from {fewer.point.devices} to {more.point.devices} devices the {name} goes from {fewer.cell.text} to "
        f"{more.cell.text}: {rise:.4g} times with {devices:g} times the devices"
    )


def bounds_of(*rates: Rate) -> str:
    """Return what is known of the errors of rates, as the subject of a sentence."""
    kinds = {rate.repeated for rate in rates}
    if kinds == {True}:
        return "the intervals of their runs"
    return f"errors of {MARGIN:.0%}, assumed where no runs are listed,"


def texts(cells: Iterable[ResultCell]) -> str:
    """Return what was printed in cells, one after the other."""
    return ", ".join(cell.text for cell in cells)


def demand(rate: ResultCell, work: Work, peak: Peak) -> str:
    """Return what a rate question of each device, against what that can do."""
    flops = needed(rate, work)
    return (
        f"{rate.text} samples/s on {rate.world_size} × {work.flops / 1e9:.3g} GFLOP ({work.source}) take "
        f"{flops / 1e9:,.0f} GFLOP/s of each, {flops / peak.flops:.3g} times the peak of {peak.flops / 1e9:,.0f} "
        f"({peak.source})"
    )


@dataclass(frozen=True)
class AuditDiagnostic:
    """One warning about numbers: ``computation`` says in words and numbers what was reckoned.

    ``explanations`` are the innocent ones: what may make the numbers right after all. ``check`` is the name of the
    check, filled in when it is run.
    """

    severity: Severity
    cells: tuple[ResultCell, ...]
    computation: str
    explanations: tuple[str, ...] = ()
    check: str = ""

    @property
    def diagnosed(self) -> tuple[str, ...]:
        """The keys of the numbers it diagnostics, and of what these summarise; not of the rate a ratio is held against.

        A note without an innocent explanation accuses none: it says what could not be checked.
        """
        if self.severity is Severity.NOTE and not self.explanations:
            return ()
        diagnosed = [cell for cell in self.cells if cell.key not in {other.baseline for other in self.cells}]
        keys = (key for cell in diagnosed for key in (cell.key, str(cell.get("runs_of") or "")) if key)
        return tuple(dict.fromkeys(keys))


#: Yields one result for each thing examined: what was found, or None where nothing is wrong with it.
Examination = Callable[[Results], Iterator[AuditDiagnostic | None]]


@dataclass(frozen=True)
class Check:
    """A question to a table of results; its name is that of its file."""

    question: str
    examines: str
    examine: Examination


@dataclass(frozen=True)
class CheckResult:
    """A check that was run: how many things it examined, and what it found."""

    name: str
    check: Check
    examined: int
    diagnostics: tuple[AuditDiagnostic, ...]

    def count(self, severity: Severity) -> int:
        """Return how many diagnostics weigh that much."""
        return sum(diagnostic.severity is severity for diagnostic in self.diagnostics)


def most_severe_first(diagnostics: Iterable[AuditDiagnostic]) -> list[AuditDiagnostic]:
    """Return diagnostics so that the heaviest come first; alike ones keep their order."""
    order = list(reversed(Severity))
    return sorted(diagnostics, key=lambda diagnostic: order.index(diagnostic.severity))


# A number of a table that stands beside the two whose product it is.


def product(results: Results, name: str, why: tuple[str, ...]) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number of a table in column ``name`` that stands beside both of its factors."""
    factors = PRODUCTS[name]
    yield from (_examined(cells, name, factors, why) for cells in results.stating(name, *factors))


def _examined(
    cells: list[ResultCell], name: str, factors: tuple[str, str], why: tuple[str, ...]
) -> AuditDiagnostic | None:
    one, other, stated = (cells[0].get(column) for column in (*factors, name))
    if one * other == stated:
        return None
    said = f"{one:g} × {other:g} = {one * other:g}, but {name} is {stated:g}"
    return AuditDiagnostic(Severity.ERROR, tuple(cells), said, why)
