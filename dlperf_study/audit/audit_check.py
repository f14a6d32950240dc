"""A check of the audit, and the diagnostics it gives about numbers of a table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dlperf_study.audit.limits import Work, required_flops
from dlperf_study.audit.rates import Rate, curve_step
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.columns import PRODUCTS
from dlperf_study.diagnostic import Severity
from dlperf_study.study.device_peaks import DevicePeak

#: Runs of one configuration that are further apart are a warning.
FAR_APART = 0.03


@dataclass(frozen=True)
class AuditDiagnostic:
    """What may be wrong about the numbers in ``cells``; ``computation`` is the evidence, in words and numbers.

    ``explanations`` are what may make the numbers right nevertheless. ``check`` is the name of the check; the audit
    fills it in.
    """

    severity: Severity
    cells: tuple[ResultCell, ...]
    computation: str
    explanations: tuple[str, ...] = ()
    check: str = ""

    @property
    def keys(self) -> list[str]:
        """The keys of the numbers."""
        return [cell.key for cell in self.cells]

    @property
    def diagnosed(self) -> tuple[str, ...]:
        """The keys of the numbers that may be wrong, and of their summaries; not the baselines of their ratios.

        Empty for a note without an explanation: it says what could not be checked.
        """
        if self.severity is Severity.NOTE and not self.explanations:
            return ()
        baselines = {cell.baseline for cell in self.cells}
        keys: dict[str, None] = {}
        for cell in self.cells:
            if cell.key not in baselines:
                keys[cell.key] = None
                keys[str(cell.get("runs_of") or cell.key)] = None
        return tuple(keys)


#: Yields one result for each item examined: a diagnostic, or None where nothing is wrong.
Examination = Callable[[Results], Iterator[AuditDiagnostic | None]]


@dataclass(frozen=True)
class Check:
    """A question to a table of results; its name is that of its file. ``examines``: what is counted, in the plural."""

    question: str
    examines: str
    examine: Examination


@dataclass(frozen=True)
class AuditResult:
    """A check that was run: how many items it examined, and its diagnostics."""

    name: str
    check: Check
    examined: int
    diagnostics: tuple[AuditDiagnostic, ...]

    def count(self, severity: Severity) -> int:
        """Return the number of diagnostics of a severity."""
        return sum(diagnostic.severity is severity for diagnostic in self.diagnostics)


def diagnostics_of(check_results: Iterable[AuditResult]) -> list[AuditDiagnostic]:
    """Return the diagnostics of all checks."""
    return [diagnostic for result in check_results for diagnostic in result.diagnostics]


def most_severe_first(diagnostics: Iterable[AuditDiagnostic]) -> list[AuditDiagnostic]:
    """Return diagnostics by severity, errors first; the order within a severity stays."""
    order = list(reversed(Severity))
    return sorted(diagnostics, key=lambda diagnostic: order.index(diagnostic.severity))


def product_diagnostics(results: Results, name: str, explanations: tuple[str, ...]) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every number in the column ``name`` of a table that prints both of its factors too."""
    factor_names = PRODUCTS[name]
    for cells in results.with_columns(name, *factor_names):
        first, second = map(cells[0].get, factor_names)
        printed = cells[0].get(name)
        if first * second == printed:
            yield None
        else:
            computation = f"{first:g} × {second:g} = {first * second:g}, but {name} is {printed:g}"
            yield AuditDiagnostic(Severity.ERROR, tuple(cells), computation, explanations)


# Phrases of computations that several checks have in common.


def step_phrase(fewer: Rate, more: Rate) -> str:
    """Return a step of a curve to more devices."""
    name = "rate" if fewer.cell.metric == THROUGHPUT else fewer.cell.metric
    rise, devices = more.cell.value / fewer.cell.value, more.point.devices / fewer.point.devices
    return (
        f"from {fewer.point.devices} to {more.point.devices} devices the {name} goes from {fewer.cell.text} to "
        f"{more.cell.text}: {rise:.4g} times with {devices:g} times the devices"
    )


def chance_phrase(is_certain: bool, fewer: Rate, more: Rate) -> str:
    """Return whether chance explains the step from one rate to another, as far as their runs tell."""
    if curve_step(fewer, more).log_ratio.error is None:
        return "without runs of both, chance may explain it"
    return f"the spread of their runs {'does not' if is_certain else 'may'} explain it"


def texts_phrase(cells: Iterable[ResultCell]) -> str:
    """Return the printed texts of some cells."""
    return ", ".join(cell.text for cell in cells)


def demand_phrase(rate: ResultCell, work: Work, peak: DevicePeak) -> str:
    """Return the FLOP/s that a rate requires of each device, compared with the peak of the device."""
    flops = required_flops(rate, work)
    return (
        f"{rate.text} samples/s on {rate.world_size} × {work.flops / 1e9:.3g} GFLOP ({work.source}) take "
        f"{flops / 1e9:,.0f} GFLOP/s of each, {flops / peak.flops:.3g} times the peak of {peak.flops / 1e9:,.0f} "
        f"({peak.source})"
    )
