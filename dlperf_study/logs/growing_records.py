"""Records that grow block by block: a column that has one value so far takes no memory, and none is copied."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dlperf_study.arrays import constant
from dlperf_study.logs.records import COLUMNS, Records, make_records

#: By how much a column grows at a time: little, because the system must provide all of it.
_GROWTH = 1.1

_Array = NDArray  # type: ignore[type-arg]


class GrowingRecords:
    """Records to which those of later lines are appended."""

    def __init__(self) -> None:
        self._size = 0
        self._columns = {name: _GrowingColumn() for name in COLUMNS}
        self._values: dict[str, _GrowingColumn] = {}

    def append(self, records: Records) -> None:
        """Append the records of lines that follow those of all records so far."""
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
        columns = _ended(self._columns)
        return Records(**columns, values=_ended(self._values))


def _ended(columns: Mapping[str, "_GrowingColumn"]) -> dict[str, _Array]:
    return {name: column.end() for name, column in columns.items()}


class _GrowingColumn:
    """One column: one value for all rows so far, or an array that is longer than the column."""

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
            self._reserve(size)
            assert self._array is not None
            self._array[self._size : size] = part
        self._size = size

    def _reserve(self, size: int) -> None:
        if self._array is None:
            assert self._first is not None
            self._array = np.full(size, self._first[0])
        elif size > self._array.size:
            # In place, without a second array.
            self._array.resize(int(_GROWTH * size), refcheck=False)

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
