"""What one log says: its records, its facts, and every doubt about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dlperf_study.logs.arrays import Real, Whole
from dlperf_study.logs.complaint import Complaint
from dlperf_study.logs.format import TRAINING, Format
from dlperf_study.logs.records import Records
from dlperf_study.logs.sources import Source

#: Longer whole numbers count no steps and no devices.
LONGEST_FACT = 15
#: How programs write that something is on or off, in small letters; what was not asked for is off.
SWITCHES = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off", "none"), False),
}
#: By how many printed steps one rank may run ahead of another.
ALLOWED_DISORDER = 3


@dataclass(frozen=True)
class Reading:
    """One log, read. ``facts``: what it states about the whole run, as text, by name."""

    source: Source
    format: Format
    records: Records
    facts: Mapping[str, str]
    complaints: tuple[Complaint, ...]
    lines: int

    @cached_property
    def rate_metric(self) -> str:
        """The best metric it has for the job's rate; empty where it has none."""
        return next((name for name in self.format.rates if self.records.holding(name).any()), "")

    @cached_property
    def rate_places(self) -> "Places":
        """Where in the training its rates were printed; lines without a step are nowhere."""
        rows = self.records
        chosen = rows.holding(self.rate_metric) & (rows.step >= 0)
        return places_of(rows.epoch[chosen], rows.step[chosen])

    def series(self, metric: str, window: str = TRAINING) -> Records:
        """Return the records of a window that hold a metric."""
        return self.records.series(metric, window)

    def fact(self, name: str) -> int | None:
        """Return a fact that is a whole number, or None where the log does not state it."""
        text = self.facts.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_FACT else None

    def switch(self, name: str) -> bool | None:
        """Return a fact that is a yes or a no, or None where the log states neither."""
        return SWITCHES.get(self.facts.get(name, "").lower())


def restarts(records: Records) -> Whole:
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


def _each_later(epochs: Whole, steps: Whole) -> bool:
    """Say whether each row is of a later place than the row before."""
    later, further = np.diff(epochs), np.diff(steps)
    return bool(((later > 0) | ((later == 0) & (further > 0))).all())


def _falls_anywhere(epochs: Whole, steps: Whole) -> bool:
    later, further = np.diff(epochs), np.diff(steps)
    return bool(((later < 0) | ((later == 0) & (further < 0))).any())


def _falls(rows: Records) -> Whole:
    order = places_of(rows.epoch, rows.step).group
    return rows.line[1:][order[:-1] - order[1:] > ALLOWED_DISORDER]


@dataclass(frozen=True)
class Places:
    """The (epoch, step) pairs of some rows, each once and in order.

    ``group``: which of them each row is of; ``counts``: how many rows each has.
    """

    epoch: Whole
    step: Whole
    group: Whole
    counts: Whole

    def ordered(self, values: Real) -> tuple[Real, Whole]:
        """Return a value per row place by place, rising within each, and where each place starts."""
        keys = (values, self.group) if (self.counts > 1).any() else (self.group,)
        return values[np.lexsort(keys)], np.cumsum(self.counts) - self.counts

    def extremes(self, values: Real) -> tuple[Real, Real]:
        """Return the smallest and the largest value of each place, given one per row."""
        ordered, starts = self.ordered(values)
        return ordered[starts], ordered[starts + self.counts - 1]


def places_of(epochs: Whole, steps: Whole) -> Places:
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
