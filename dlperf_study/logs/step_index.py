"""Where in the training rows were printed: each (epoch, step) once, and where these start over."""

from dataclasses import dataclass

import numpy as np

from dlperf_study.arrays import Floats, Integers
from dlperf_study.logs.records import Records

#: By how many printed steps one rank may run ahead of another.
ALLOWED_DISORDER = 3


@dataclass(frozen=True)
class Places:
    """The (epoch, step) pairs of some rows, each once and in order.

    ``group``: which of them each row is of; ``counts``: how many rows each has.
    """

    epoch: Integers
    step: Integers
    group: Integers
    counts: Integers

    def ordered(self, values: Floats) -> tuple[Floats, Integers]:
        """Return a value per row place by place, rising within each, and where each place starts."""
        keys = (values, self.group) if (self.counts > 1).any() else (self.group,)
        return values[np.lexsort(keys)], np.cumsum(self.counts) - self.counts

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest value of each place, given one per row."""
        ordered, starts = self.ordered(values)
        return ordered[starts], ordered[starts + self.counts - 1]

    def medians(self, values: Floats) -> Floats:
        """Return the median of the values of each place, given one per row."""
        ordered, starts = self.ordered(values)
        middle: Floats = (ordered[starts + (self.counts - 1) // 2] + ordered[starts + self.counts // 2]) / 2
        return middle

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each place, given one per row."""
        return np.bincount(self.group, weights=values).astype(np.float64)

    def means(self, values: Floats) -> Floats:
        """Return the mean of the values of each place, given one per row."""
        means: Floats = self.sums(values) / self.counts
        return means


def places_of(epochs: Integers, steps: Integers) -> Places:
    """Return the places of rows; logs are nearly in order, which is what this sort is quick with."""
    if _each_later(epochs, steps):
        return Places(epochs, steps, np.arange(steps.size), np.ones(steps.size, dtype=np.int64))
    order = np.lexsort((steps, epochs))
    epochs, steps = epochs[order], steps[order]
    is_first = np.ones(order.size, dtype=bool)
    is_first[1:] = (np.diff(epochs) != 0) | (np.diff(steps) != 0)
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(is_first) - 1
    first = np.flatnonzero(is_first)
    return Places(epochs[first], steps[first], group, np.diff(first, append=order.size))


def restarts(records: Records) -> Integers:
    """Return the lines at which a rank's training starts over: steps fall back behind the line before.

    Ranks that print into one stream without their names mix within a few steps; a fall by more than ALLOWED_DISORDER
    printed steps is no such mixing.
    """
    chosen = np.flatnonzero((records.step >= 0) & records.training)
    if not _falls_anywhere(records.epoch[chosen], records.step[chosen]):
        return records.line[:0]
    known = records.where(chosen)
    parts = [_falls(known.where(known.rank == rank)) for rank in np.unique(known.rank)]
    return np.sort(np.concatenate(parts))


def _each_later(epochs: Integers, steps: Integers) -> bool:
    """Say whether each row is of a later place than the row before."""
    later, further = np.diff(epochs), np.diff(steps)
    return bool(((later > 0) | ((later == 0) & (further > 0))).all())


def _falls_anywhere(epochs: Integers, steps: Integers) -> bool:
    later, further = np.diff(epochs), np.diff(steps)
    return bool(((later < 0) | ((later == 0) & (further < 0))).any())


def _falls(rows: Records) -> Integers:
    order = places_of(rows.epoch, rows.step).group
    return rows.line[1:][order[:-1] - order[1:] > ALLOWED_DISORDER]
