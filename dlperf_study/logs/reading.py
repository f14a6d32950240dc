"""What one log says: its records, its facts, and every doubt about them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dlperf_study.logs.complaint import Complaint
from dlperf_study.logs.format import TRAINING, Format
from dlperf_study.logs.records import Records, Whole
from dlperf_study.logs.sources import Source

#: Longer whole numbers count no steps and no devices.
LONGEST_FACT = 15
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

    @property
    def rate_metric(self) -> str:
        """The best metric it has for the job's rate; empty where it has none."""
        return next((name for name in self.format.rates if len(self.series(name))), "")

    def series(self, metric: str, window: str = TRAINING) -> Records:
        """Return the records of a window that hold a metric."""
        return self.records.series(metric, window)

    def fact(self, name: str) -> int | None:
        """Return a fact that is a whole number, or None where the log does not state it."""
        text = self.facts.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_FACT else None


def restarts(records: Records) -> Whole:
    """Return the lines at which a rank's training starts over: steps fall back behind the line before.

    Ranks that print into one stream without their names mix within a few steps; a fall by more than ALLOWED_DISORDER
    printed steps is no such mixing.
    """
    known = records.where((records.step >= 0) & records.training)
    if not _falls_anywhere(known):
        return known.line[:0]
    parts = [_falls(known.where(known.rank == rank)) for rank in np.unique(known.rank)]
    return np.sort(np.concatenate(parts))


def _falls_anywhere(rows: Records) -> bool:
    epochs, steps = np.diff(rows.epoch), np.diff(rows.step)
    return bool(((epochs < 0) | ((epochs == 0) & (steps < 0))).any())


def _falls(rows: Records) -> Whole:
    order = order_of_places(rows)
    return rows.line[1:][order[:-1] - order[1:] > ALLOWED_DISORDER]


def order_of_places(rows: Records) -> Whole:
    """Return, of each row, how many pairs of epoch and step there are before its own."""
    epochs, steps = (np.unique(column, return_inverse=True)[1] for column in (rows.epoch, rows.step))
    pairs = epochs * (steps.max(initial=0) + 1) + steps
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64)
