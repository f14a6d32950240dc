"""One number of a table: its printed digits and its conditions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np

from dlperf_study.audit import quantities
from dlperf_study.metrics.scaling import CurvePoint, CurveStep
from dlperf_study.metrics.statistics import MINIMUM_RUNS, Estimate, Sample, log_ratio

#: How a number, as a multiple of its last printed digit, may have become an integer.
ROUNDINGS: Mapping[str, Callable[[Fraction], int]] = {
    "half up": lambda units: math.floor(units + Fraction(1, 2)),
    "half even": round,
    "truncated": math.trunc,
}
TRUNCATED = "truncated"
#: Significant digits of a number that was never printed: a double after some arithmetic.
EXACT_DIGITS = 9
#: A double is read as the decimal fraction with a denominator of at most this.
_LARGEST_DENOMINATOR = 10**12


@cache
def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10) ** exponent


@cache
def _decimal_fraction(resolution: float) -> Fraction:
    """Return a unit of a printed digit exactly; a table has few of them."""
    return Fraction(resolution).limit_denominator(_LARGEST_DENOMINATOR)


@dataclass(frozen=True)
class PrintedNumber:
    """Units of the last printed digit: 10.2 is 102 units of 1/10.

    A ``computed`` number, which was never printed, has nine significant digits.
    """

    units: int
    step: Fraction
    computed: bool = False

    @classmethod
    def from_value(cls, value: float, resolution: float | None) -> "PrintedNumber":
        """Return a value as printed; without ``resolution`` it is computed."""
        magnitude = math.floor(math.log10(abs(value))) if value else 0
        finest_step, printed_step = _power_of_ten(magnitude - EXACT_DIGITS + 1), _decimal_fraction(resolution or 0.0)
        step = max(printed_step, finest_step)
        return cls(round(Fraction(value) / step), step, computed=printed_step < finest_step)

    @cached_property
    def exact(self) -> Fraction:
        """The number exactly as printed."""
        return self.units * self.step

    @property
    def resolution(self) -> float:
        """One unit of the last printed digit; 0 if computed."""
        if self.computed:
            return 0.0
        return float(self.step)

    @property
    def is_positive(self) -> bool:
        """Whether it is above 0 for every rounding."""
        return self.units > 0

    def roundings_from(self, exact: Fraction, step: Fraction | None = None) -> tuple[str, ...]:
        """Return the roundings of ``exact`` that print this number."""
        digit = step or self.step
        units, printed_units = exact / digit, self.exact / digit
        return tuple(name for name, rounding in ROUNDINGS.items() if rounding(units) == printed_units)

    def bounds(self, truncated: bool = False) -> tuple[Fraction, Fraction]:
        """Return the smallest and largest number that prints like this."""
        if truncated:
            return self._rounded_bounds[0], self.exact + self.step
        return self._rounded_bounds

    @cached_property
    def _rounded_bounds(self) -> tuple[Fraction, Fraction]:
        return self.exact - self.step / 2, self.exact + self.step / 2

    def exceeds(self, other: "PrintedNumber") -> bool:
        """Return whether it is larger than another number for every rounding."""
        return self.bounds()[0] > other.bounds(truncated=True)[1]

    def overlaps(self, low: Fraction, high: Fraction) -> bool:
        """Return whether a number from low to high prints like this."""
        smallest, largest = self.bounds(truncated=True)
        return low <= largest and smallest <= high


def quotient(
    numerator: PrintedNumber, denominator: PrintedNumber, truncated: bool = False
) -> tuple[Fraction, Fraction]:
    """Return the bounds of the quotient of two positive printed numbers."""
    low, high = numerator.bounds(truncated)
    smallest, largest = denominator.bounds(truncated)
    return low / largest, high / smallest


def integer_quotient(numerator: int | Fraction, denominator: PrintedNumber) -> tuple[Fraction, Fraction]:
    """Return the bounds of an exact number over a printed number."""
    smallest, largest = denominator.bounds(truncated=True)
    return numerator / largest, numerator / smallest


@dataclass(frozen=True, eq=False)
class ResultCell:
    """One number of a table of results.

    ``key`` is unique. ``text`` is the printed text. ``series`` names the curve of cells that differ only in nodes and
    devices. ``facts`` holds the other columns of the table, without missing values. ``extra_conditions`` are condition
    columns that this package does not define.
    """

    key: str
    metric: str
    value: float
    text: str
    printed: PrintedNumber
    series: str
    world_size: int | None
    facts: Mapping[str, Any]
    extra_conditions: tuple[str, ...] = ()

    def get(self, name: str) -> Any:
        """Return the value of a column, or None."""
        return self.facts.get(name)

    @cached_property
    def by_folded_name(self) -> dict[str, Any]:
        """The other columns by their names in lower case."""
        return {name.casefold(): value for name, value in list(self.facts.items())[::-1]}

    @property
    def baseline(self) -> str:
        """The key of the named baseline, or empty."""
        return str(self.facts.get("baseline", ""))

    @property
    def estimator(self) -> str:
        """How the number summarises its runs, if the table says so."""
        return str(self.facts.get("estimator", ""))

    @cached_property
    def point(self) -> tuple[Any, ...]:
        """The series, and the devices and nodes on it."""
        return self.series, self.world_size, self.get("nodes")

    @property
    def table(self) -> tuple[Any, Any]:
        """The source and the table that print the number."""
        return self.get("source"), self.get("table")

    @cached_property
    def configuration(self) -> tuple[str, ...]:
        """The values of all conditions, empty where unknown."""
        return tuple(str(self.facts.get(name, "")) for name in (*quantities.CONFIGURATION, *self.extra_conditions))

    @property
    def inferred(self) -> tuple[str, ...]:
        """The columns whose values the table itself does not print."""
        return tuple(str(self.facts.get("inferred", "")).split(", "))

    @property
    def is_run(self) -> bool:
        """Whether the number is of one repetition, and no summary."""
        return self.estimator == "run"


def list_values(cells: Iterable[ResultCell]) -> list[float]:
    """Return the values of some cells."""
    return [cell.value for cell in cells]


@dataclass(frozen=True)
class Throughput:
    """A throughput on a scaling curve, its logarithm, and its runs."""

    cell: ResultCell
    point: CurvePoint
    logarithm: Estimate
    runs: Sample | None = None


def curve_step(fewer: Throughput, more: Throughput) -> CurveStep:
    """Return the step from one throughput to the throughput of more devices."""
    if fewer.runs and more.runs:
        return CurveStep(fewer.point, more.point, log_ratio(more.runs, fewer.runs))
    return CurveStep(fewer.point, more.point, more.logarithm.minus(fewer.logarithm))


def _sample(runs: Sequence[ResultCell]) -> Sample | None:
    """Return at least 3 runs with their rounds, if any; else None."""
    throughputs = np.array(list_values(runs))
    if throughputs.size < MINIMUM_RUNS or throughputs.min() <= 0:
        return None
    # A source may drop the last zeros: 80 next to 79.9 is 80.0.
    resolution = min(run.printed.resolution for run in runs)
    if all(run.get("order") is None for run in runs):
        return Sample(throughputs, resolution=resolution)
    rounds = [run.get("round") for run in runs]
    return Sample(throughputs, np.array(rounds, dtype=np.float64), resolution, runs[0].get("looks") or 1)


def estimate_throughput(cell: ResultCell, cells_of_runs: Sequence[ResultCell]) -> Throughput:
    """Return a positive throughput, estimated from runs or its interval."""
    runs = _sample(cells_of_runs)
    low, high = cell.get("low"), cell.get("high")
    if runs:
        logarithm = runs.logarithms.estimate
    elif low is None or high is None or not 0 < low <= high:
        logarithm = Estimate(math.log(cell.value))
    else:
        run_count = cell.get("runs_counted") or cell.get("runs_completed") or cell.get("runs")
        logarithm = Estimate.from_printed(cell.value, low, high, run_count, cell.printed.resolution / cell.value)
    return Throughput(cell, CurvePoint(cell.world_size or 0, cell.value), logarithm, runs)
