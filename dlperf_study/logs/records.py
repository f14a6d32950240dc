"""What was read from a log, in columns: one row per line, and the index of the steps of the rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlperf_study.arrays import Floats, Integers, Mask, concatenated, constant, elements, is_constant
from dlperf_study.logs.format import TRAINING


@dataclass(frozen=True)
class Records:
    """Columns of equal length, in the order of the lines.

    ``line``: its number in the log, from 1. ``training``: whether it is about training, not validation.
    ``rank``, ``epoch``, ``step``: −1 if the line names none. ``time_seconds``: the time printed with it, NaN if there
    is none; Unix time, or seconds since midnight if the line has no date. ``values``: by metric, in the unit of the
    metric; NaN if the line has none.
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
        indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        columns = {name: elements(getattr(self, name), indices) for name in COLUMNS}
        return Records(**columns, values={name: elements(column, indices) for name, column in self.values.items()})

    def series(self, metric: str, window: str = TRAINING) -> "Records":
        """Return the rows of a window that have a metric; none if the log does not have the metric."""
        return self.select(self.has_metric(metric, window))

    def has_metric(self, metric: str, window: str = TRAINING) -> Mask:
        """Return which rows of a window have a metric."""
        if metric not in self.values:
            return np.zeros(len(self), dtype=bool)
        has_metric: Mask = (self.training == (window == TRAINING)) & ~np.isnan(self.values[metric])
        return has_metric


#: Every column except the values; and those for the position in the training and the rank that printed a line.
COLUMNS = tuple(field.name for field in fields(Records) if field.name != "values")
POSITION_COLUMNS = ("epoch", "step", "rank")


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
        columns = {name: _concatenated(list(map(attrgetter(name), parts))) for name in COLUMNS}
        values: dict[str, Floats] = {}
        for metric in dict.fromkeys(chain.from_iterable(part.values for part in parts)):
            values[metric] = _concatenated([part.values.get(metric, constant(np.nan, len(part))) for part in parts])
        merged = Records(**columns, values=values)
    is_ordered = (merged.line[1:] >= merged.line[:-1]).all()
    return merged if is_ordered else merged.select(np.argsort(merged.line, kind="stable"))


def _concatenated(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return columns one after the other; constant where all are, with the same value."""
    first = columns[0]
    if all(is_constant(column) and np.array_equal(column[:1], first[:1], equal_nan=True) for column in columns):
        return constant(first[0], sum(column.size for column in columns))
    return np.concatenate(columns)


@dataclass(frozen=True)
class Matches:
    """What the lines of one kind in a block contain, and which lines they are.

    Lines are counted from 0. ``used``: those that were understood; ``candidates``: those with a needle; ``nan_lines``:
    those used that print a number as NaN.
    """

    records: Records
    used: Integers
    candidates: Integers
    nan_lines: Integers

    @classmethod
    def none_of(cls, candidates: Integers) -> "Matches":
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


@dataclass(frozen=True)
class StepIndex:
    """The (epoch, step) pairs of some rows, each once and in order.

    ``counts``: how many rows each pair has. ``shared_groups``: the index of the pair of each row; None where each row
    has a pair of its own, in order.
    """

    epoch: Integers
    step: Integers
    counts: Integers
    shared_groups: Integers | None

    @property
    def group(self) -> Integers:
        """The index of the pair of each row."""
        return np.arange(self.step.size) if self.shared_groups is None else self.shared_groups

    def ordered(self, values: Floats) -> tuple[Floats, Integers]:
        """Return one value per row, ordered by step and within each step; and where each step starts."""
        if self.shared_groups is None:
            return values, np.arange(values.size)
        keys = (values, self.group) if (self.counts > 1).any() else (self.group,)
        return values[np.lexsort(keys)], np.cumsum(self.counts) - self.counts

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest value of each step, given one per row."""
        if self.shared_groups is None:
            return values, values
        ordered, starts = self.ordered(values)
        return ordered[starts], ordered[starts + self.counts - 1]

    def latest(self, times: Floats) -> Floats:
        """Return the largest of the values of each step that are not NaN, given one per row; NaN without any."""
        if self.shared_groups is None:
            return times
        if self.group.size == self.counts.size:
            latest = np.empty_like(times)
            latest[self.group] = times
            return latest
        ordered = times[np.argsort(self.group, kind="stable")]
        return np.fmax.reduceat(ordered, np.cumsum(self.counts) - self.counts)

    def medians(self, values: Floats) -> Floats:
        """Return the median of the values of each step, given one per row."""
        if self.shared_groups is None:
            return values
        ordered, starts = self.ordered(values)
        middle: Floats = (ordered[starts + (self.counts - 1) // 2] + ordered[starts + self.counts // 2]) / 2
        return middle

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each step, given one per row."""
        if self.shared_groups is None:
            return values
        return np.bincount(self.group, weights=values).astype(np.float64)

    def means(self, values: Floats) -> Floats:
        """Return the mean of the values of each step, given one per row."""
        means: Floats = self.sums(values) / self.counts
        return means


def index_steps(epochs: Integers, steps: Integers) -> StepIndex:
    """Return the index of the (epoch, step) pairs of rows; logs are nearly in order, for which this sort is fast."""
    is_same_epoch = epochs[1:] == epochs[:-1]
    if ((epochs[1:] > epochs[:-1]) | (is_same_epoch & (steps[1:] > steps[:-1]))).all():
        return StepIndex(epochs, steps, constant(1, steps.size), None)
    order = np.lexsort((steps, epochs))
    epochs, steps = epochs[order], steps[order]
    is_first = np.ones(order.size, dtype=bool)
    is_first[1:] = (np.diff(epochs) != 0) | (np.diff(steps) != 0)
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(is_first) - 1
    first = np.flatnonzero(is_first)
    return StepIndex(epochs[first], steps[first], np.diff(first, append=order.size), group)
