"""One number of a table of results, and what the table says of it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dlperf_study.study.configuration import FIELD_NAMES

# A number as it was printed, and which exact numbers may stand behind its last digit.


#: How an exact number, counted in units of the last printed digit, may have become a whole number of them.
ROUNDINGS: Mapping[str, Callable[[Fraction], int]] = {
    "half up": lambda units: math.floor(units + Fraction(1, 2)),
    "half even": round,
    "truncated": math.trunc,
}
TRUNCATED = "truncated"
#: Digits to which a number that was never printed is trusted: a double that went through some arithmetic.
EXACT_DIGITS = 9
#: Denominators up to which a double is taken for the decimal fraction it stands for.
_MOST = 10**12


@dataclass(frozen=True)
class Printed:
    """A whole number of units of its last digit: 10.2 is 102 units of 1/10.

    A number that was ``computed`` and never printed has its first nine digits instead.
    """

    units: int
    step: Fraction
    computed: bool = False

    @classmethod
    def of(cls, value: float, resolution: float | None) -> "Printed":
        """Return a value as printed; ``resolution`` is what its last digit is worth, None for a computed number."""
        finest = _finest(value)
        step = Fraction(resolution).limit_denominator(_MOST) if resolution else Fraction(0)
        return cls(round(Fraction(value) / max(step, finest)), max(step, finest), computed=step < finest)

    @property
    def exact(self) -> Fraction:
        """The number as it stands there."""
        return self.units * self.step

    @property
    def positive(self) -> bool:
        """Whether it stays above 0 whatever was rounded away, so that one may divide by it."""
        return self.bounds()[0] > 0

    def roundings_from(self, exact: Fraction, step: Fraction | None = None) -> tuple[str, ...]:
        """Return the ways to round that make this number of ``exact``; to digits of size ``step``, else its own."""
        digit = step or self.step
        return tuple(name for name, rounded in ROUNDINGS.items() if rounded(exact / digit) * digit == self.exact)

    def bounds(self, truncated: bool = False) -> tuple[Fraction, Fraction]:
        """Return the least and the largest number that prints like this: rounded, or perhaps cut off."""
        return self.exact - self.step / 2, self.exact + self.step * (1 if truncated else Fraction(1, 2))

    def exceeds(self, other: "Printed") -> bool:
        """Say whether it is more than another number, whatever was rounded away from it, or even cut off the other."""
        return self.bounds()[0] > other.bounds(truncated=True)[1]

    def meets(self, low: Fraction, high: Fraction) -> bool:
        """Say whether some number from low to high prints like this, rounded or cut off."""
        least, largest = self.bounds(truncated=True)
        return low <= largest and least <= high


def quotient(numerator: Printed, denominator: Printed, truncated: bool = False) -> tuple[Fraction, Fraction]:
    """Return the bounds of a quotient of two positive printed numbers."""
    (low, high), (least, largest) = numerator.bounds(truncated), denominator.bounds(truncated)
    return low / largest, high / least


def whole_over(numerator: int, denominator: Printed) -> tuple[Fraction, Fraction]:
    """Return the bounds of a whole number over a positive printed one, rounded or cut off."""
    least, largest = denominator.bounds(truncated=True)
    return numerator / largest, numerator / least


def _finest(value: float) -> Fraction:
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    return Fraction(10) ** (magnitude - EXACT_DIGITS + 1)


THROUGHPUT, SPEEDUP, EFFICIENCY, RELATIVE = "throughput", "speedup", "efficiency", "relative_throughput"

#: What must be the same for two numbers of one metric to answer the same question: every parameter of ours, and what
#: a publication says besides.
CONFIGURATION = (
    *FIELD_NAMES,
    *("program", "extra", "mode", "sequence_length", "world_size", "parameters"),
    *("device", "device_name", "link", "instance", "hardware", "software"),
)
#: What differs along a curve, and so parts none.
SIZES = ("world_size", "nodes", "devices_per_node", "global_batch")


@dataclass(frozen=True, eq=False)
class ResultCell:
    """One number of a table of results.

    ``key`` names it uniquely. ``text`` is what was printed. ``series`` names the line of points that differ only in
    nodes and devices. ``facts`` holds everything else the table says of it, by column; what is missing is not there.
    ``own_conditions``: its conditions in columns of its own, which ours know nothing of.
    """

    key: str
    metric: str
    value: float
    text: str
    printed: Printed
    series: str
    world_size: int | None
    facts: Mapping[str, Any]
    own_conditions: tuple[str, ...] = ()

    def get(self, name: str) -> Any:
        """Return what the table says of the cell in a column, or None."""
        return self.facts.get(name)

    @property
    def baseline(self) -> str:
        """The key of the cell a ratio is relative to; empty if the table names none."""
        return str(self.facts.get("baseline", ""))

    @property
    def estimator(self) -> str:
        """How it summarises its runs, as far as the table says."""
        return str(self.facts.get("estimator", ""))

    @property
    def point(self) -> tuple[Any, ...]:
        """Its place on its series."""
        return self.series, self.world_size, self.get("nodes")

    @property
    def table(self) -> tuple[Any, Any]:
        """The source and table it stands in."""
        return self.get("source"), self.get("table")

    @property
    def configuration(self) -> tuple[str, ...]:
        """What it was measured with, as far as the table says."""
        return tuple(str(self.facts.get(name, "")) for name in (*CONFIGURATION, *self.own_conditions))

    @property
    def inferred(self) -> tuple[str, ...]:
        """The columns whose values the table itself does not print."""
        return tuple(str(self.facts.get("inferred", "")).split(", "))

    @property
    def is_run(self) -> bool:
        """Whether it is one repetition, and not a summary of them."""
        return self.estimator == "run"
