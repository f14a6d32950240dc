"""Columns of the dataset as a reader sees them: the label and unit of the registry, with a fitting prefix."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from dlperf_study.columns import COLUMNS
from dlperf_study.report.numbers import is_missing

#: Units that take a prefix, and how each prefixed unit is written.
_PREFIXED = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "bytes/s")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s")),
    "FLOP": ((1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP")),
}


@dataclass(frozen=True)
class Unit:
    """A label with its unit, and what one of that unit is in the unit of the dataset."""

    label: str
    symbol: str
    size: float

    @property
    def axis(self) -> str:
        """The label of an axis."""
        return f"{self.label} ({self.symbol})" if self.symbol else self.label


def unit_of(column: str, values: Iterable[Any]) -> Unit:
    """Return the unit in which most of ``values`` are at least one; zeros fit any unit."""
    known = COLUMNS[column]
    numbers = [abs(float(value)) for value in values if not is_missing(value) and value]
    choices = _PREFIXED.get(known.unit, ((1.0, known.unit),))
    typical = median(numbers) if numbers else 1.0
    size, symbol = next((choice for choice in choices if typical >= choice[0]), choices[-1])
    return Unit(known.label, symbol, size)
