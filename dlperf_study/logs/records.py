"""Records of a log in columns: one row per line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlperf_study.core.arrays import Floats, Integers, Mask, concatenated, constant, elements, is_constant

POSITION_COLUMNS = ("epoch", "step", "rank")
#: By how much a column grows at a time: little, because the system must provide all of it.
_GROWTH = 1.1
_Array = NDArray  # type: ignore[type-arg]


@dataclass(frozen=True)
class Records:
    """Columns of equal length, in the order of the lines.

    ``line``: its number in the log, from 1. ``training``: about training, not validation. ``rank``, ``epoch``,
    ``step``: −1 if the line names none. ``time_seconds``: Unix time, or seconds since midnight without a date, or NaN.
    ``values``: by metric, in its unit, or NaN.
    """

    line: Integers
    training: Mask
    rank: Integers
    epoch: Integers
    step: Integers
    time_seconds: Floats
    values: Mapping[str, Floats]

    def __len__(self) -> int:
        return self.line.size

    @property
    def has_numbers(self) -> bool:
        """Whether any row has a number."""
        return any(not np.isnan(column).all() for column in self.values.values())

    def select(self, rows: Mask | Integers) -> "Records":
        """Return these rows; a copy only where some are left out."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        indices = rows
        if rows.dtype == np.bool_:
            indices = np.flatnonzero(rows)
        columns = {name: elements(getattr(self, name), indices) for name in COLUMNS}
        return Records(**columns, values={name: elements(column, indices) for name, column in self.values.items()})

    def series(self, metric: str) -> "Records":
        """Return the training rows with a metric."""
        return self.select(self.has_metric(metric))

    def has_metric(self, metric: str) -> Mask:
        """Return which rows of training have a metric."""
        if metric not in self.values:
            return np.zeros(len(self), dtype=bool)
        has_metric: Mask = self.training & ~np.isnan(self.values[metric])
        return has_metric


COLUMNS = tuple(field.name for field in fields(Records) if field.name != "values")


def make_records(line: Integers, values: Mapping[str, Floats], **columns: NDArray) -> Records:  # type: ignore[type-arg]
    """Return records; columns that are not given are unknown."""
    size = line.size
    unknown = constant(-1, size)
    defaults = {
        "training": constant(True, size),
        "rank": unknown,
        "epoch": unknown,
        "step": unknown,
        "time_seconds": constant(np.nan, size),
    }
    return Records(line=line, values=values, **(defaults | columns))


def merge_records(parts: Sequence[Records]) -> Records:
    """Return the rows of all parts in the order of the lines."""
    parts = parts or [make_records(np.empty(0, dtype=np.int64), {})]
    if len(parts) == 1:
        merged = parts[0]
    else:
        columns = {}
        for name in COLUMNS:
            columns[name] = _concatenated(list(map(attrgetter(name), parts)))
        values: dict[str, Floats] = {}
        for metric in dict.fromkeys(chain.from_iterable(part.values for part in parts)):
            values[metric] = _concatenated([part.values.get(metric, constant(np.nan, len(part))) for part in parts])
        merged = Records(**columns, values=values)
    is_ordered = (merged.line[1:] >= merged.line[:-1]).all()
    if is_ordered:
        return merged
    return merged.select(np.argsort(merged.line, kind="stable"))


def _concatenated(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate columns; equal constants stay constant."""
    first = columns[0]
    if all(is_constant(column) and np.array_equal(column[:1], first[:1], equal_nan=True) for column in columns):
        return constant(first[0], sum(column.size for column in columns))
    return np.concatenate(columns)


@dataclass(frozen=True)
class Matches:
    """The content of one kind of lines in a block.

    Lines are counted from 0. ``used``: understood lines; ``candidates``: lines with a needle; ``nan_lines``: used lines
    with a NaN.
    """

    records: Records
    used: Integers
    candidates: Integers
    nan_lines: Integers

    @classmethod
    def reject_all(cls, candidates: Integers) -> "Matches":
        """Return that none of the candidates could be used."""
        no_lines = candidates[:0]
        return cls(make_records(no_lines, {}), no_lines, candidates, no_lines)

    @classmethod
    def merged(cls, parts: Sequence["Matches"]) -> "Matches":
        """Return what all parts contain, in the order of the lines."""
        records = [part.records for part in parts if len(part.records)]
        used, candidates, nan_lines = (
            np.sort(concatenated(map(attrgetter(name), parts))) for name in ("used", "candidates", "nan_lines")
        )
        return cls(merge_records(records), used, candidates, nan_lines)

    @property
    def usual_metrics(self) -> set[str]:
        """The metrics that most of its rows have."""
        columns = self.records.values.items()
        return {name for name, column in columns if 2 * (~np.isnan(column)).sum() > column.size}


class GrowingRecords:
    """Records that grow; constant columns take no memory."""

    def __init__(self) -> None:
        self._size = 0
        self._columns = {name: _GrowingColumn() for name in COLUMNS}
        self._values: dict[str, _GrowingColumn] = {}

    def append(self, records: Records) -> None:
        """Append the records of later lines."""
        if not len(records):
            return
        for name, column in self._columns.items():
            column.append(getattr(records, name))
        for metric in records.values:
            if metric not in self._values:
                self._values[metric] = _GrowingColumn()
                self._values[metric].append(constant(np.nan, self._size))
        missing = constant(np.nan, len(records))
        for metric, column in self._values.items():
            column.append(records.values.get(metric, missing))
        self._size += len(records)

    def end(self) -> Records:
        """Return all records; nothing can be appended any more."""
        if not self._size:
            return make_records(np.empty(0, dtype=np.int64), {})
        columns = {name: column.end() for name, column in self._columns.items()}
        return Records(**columns, values={name: column.end() for name, column in self._values.items()})


class _GrowingColumn:
    """One column: a single value so far, or a longer array."""

    def __init__(self) -> None:
        self._size = 0
        self._first: _Array | None = None
        self._array: _Array | None = None

    def append(self, part: _Array) -> None:
        """Append values."""
        if not part.size:
            return
        if self._first is None:
            self._first = part[:1].copy()
        size = self._size + part.size
        if self._array is not None or not _has_one_value(part, self._first[0]):
            if self._array is None:
                self._array = np.full(size, self._first[0])
            elif size > self._array.size:
                # In place, without a second array.
                self._array.resize(int(_GROWTH * size), refcheck=False)
            self._array[self._size : size] = part
        self._size = size

    def end(self) -> _Array:
        """Return the column."""
        if self._array is None:
            assert self._first is not None
            return constant(self._first[0], self._size)
        self._array.resize(self._size, refcheck=False)
        return self._array


def _has_one_value(part: _Array, value: np.generic) -> bool:
    """Return whether all elements are this value, which may be NaN."""
    if part.dtype.kind == "f" and np.isnan(value):
        return bool(np.isnan(part).all())
    return bool(part[-1] == value and (part == value).all())
