"""One number of a table of results: the digits that were printed, and everything the table says about it."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dlperf_study.study.configuration import FIELD_NAMES

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


@dataclass(frozen=True)
class PrintedNumber:
    """An integer number of units of the last printed digit: 10.2 is 102 units of 1/10.

    A number that was ``computed`` and never printed has nine significant digits.
    """

    units: int
    step: Fraction
    computed: bool = False

    @classmethod
    def of(cls, value: float, resolution: float | None) -> "PrintedNumber":
        """Return a value as printed; ``resolution`` is one unit of its last digit, None for a computed number."""
        magnitude = math.floor(math.log10(abs(value))) if value else 0
        finest_step = Fraction(10) ** (magnitude - EXACT_DIGITS + 1)
        printed_step = Fraction(resolution).limit_denominator(_LARGEST_DENOMINATOR) if resolution else Fraction(0)
        step = max(printed_step, finest_step)
        return cls(round(Fraction(value) / step), step, computed=printed_step < finest_step)

    @property
    def exact(self) -> Fraction:
        """The number exactly as printed."""
        return self.units * self.step

    @property
    def resolution(self) -> float:
        """One unit of the last printed digit; 0 for a number that was never printed."""
        return 0.0 if self.computed else float(self.step)

    @property
    def is_positive(self) -> bool:
        """Whether it is above 0 however it was rounded, so that it may be a divisor."""
        return self.bounds()[0] > 0

    def roundings_from(self, exact: Fraction, step: Fraction | None = None) -> tuple[str, ...]:
        """Return the names of the roundings that turn ``exact`` into this number, to digits of ``step``."""
        digit = step or self.step
        return tuple(name for name, rounding in ROUNDINGS.items() if rounding(exact / digit) * digit == self.exact)

    def bounds(self, truncated: bool = False) -> tuple[Fraction, Fraction]:
        """Return the smallest and the largest number that is printed like this: rounded, or also truncated."""
        return self.exact - self.step / 2, self.exact + self.step * (1 if truncated else Fraction(1, 2))

    def exceeds(self, other: "PrintedNumber") -> bool:
        """Return whether it is larger than another number, even if it was rounded up and the other truncated."""
        return self.bounds()[0] > other.bounds(truncated=True)[1]

    def overlaps(self, low: Fraction, high: Fraction) -> bool:
        """Return whether a number from low to high is printed like this, rounded or truncated."""
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
    """Return the bounds of an exact number over a positive printed number, rounded or truncated."""
    smallest, largest = denominator.bounds(truncated=True)
    return numerator / largest, numerator / smallest


THROUGHPUT, SPEEDUP, EFFICIENCY, RELATIVE = "throughput", "speedup", "efficiency", "relative_throughput"
#: Rates that everyday tables print. Tokens are no samples, and the rate of one device is not that of the job.
TOKENS, STEPS = "tokens_per_second", "steps_per_second"
SAMPLES_OF_DEVICE, TOKENS_OF_DEVICE = "samples_per_second_per_device", "tokens_per_second_per_device"
#: A result whose quantity its table does not say.
UNNAMED, STANDARD_DEVIATION = "unnamed_result", "standard_deviation"
#: What only tables of others print, and no study measures.
EVERYDAY_METRICS = (TOKENS, STEPS, SAMPLES_OF_DEVICE, TOKENS_OF_DEVICE, UNNAMED, STANDARD_DEVIATION)
#: The rates that ratios may be made from, the first that a table prints; and those of one device.
RATES_OF_DEVICE = (SAMPLES_OF_DEVICE, TOKENS_OF_DEVICE)
RATES = (THROUGHPUT, TOKENS, *RATES_OF_DEVICE)
#: The estimator of our own rates.
GEOMETRIC_MEAN = "geometric mean"
#: Columns that are equal for two numbers of the same configuration: our parameters, and those of publications.
CONFIGURATION = (
    *FIELD_NAMES,
    *("program", "extra", "mode", "sequence_length", "world_size", "parameters"),
    *("device", "device_name", "link", "instance", "hardware", "software"),
)
#: Columns that change along a scaling curve.
SIZES = ("world_size", "nodes", "devices_per_node", "global_batch")


@dataclass(frozen=True, eq=False)
class ResultCell:
    """One number of a table of results.

    ``key`` is unique. ``text`` is what was printed. ``series`` names the curve of cells that differ only in nodes and
    devices. ``facts`` holds the other columns of the table by name, without missing values. ``extra_conditions`` are
    the condition columns that this package does not define.
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

    @property
    def baseline(self) -> str:
        """The key of the cell a ratio is relative to; empty if the table names none."""
        return str(self.facts.get("baseline", ""))

    @property
    def estimator(self) -> str:
        """How the number summarises its runs, if the table says so."""
        return str(self.facts.get("estimator", ""))

    @property
    def point(self) -> tuple[Any, ...]:
        """The series, and the devices and nodes on it."""
        return self.series, self.world_size, self.get("nodes")

    @property
    def table(self) -> tuple[Any, Any]:
        """The source and the table that print the number."""
        return self.get("source"), self.get("table")

    @property
    def configuration(self) -> tuple[str, ...]:
        """The values of all conditions, empty where unknown."""
        return tuple(str(self.facts.get(name, "")) for name in (*CONFIGURATION, *self.extra_conditions))

    @property
    def inferred(self) -> tuple[str, ...]:
        """The columns whose values the table itself does not print."""
        return tuple(str(self.facts.get("inferred", "")).split(", "))

    @property
    def is_run(self) -> bool:
        """Whether the number is of one repetition, and no summary."""
        return self.estimator == "run"


def values_of(cells: Iterable[ResultCell]) -> list[float]:
    """Return the values of some cells."""
    return [cell.value for cell in cells]
