"""What was read from a log, in columns: one row per line that was understood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from dlperf_study.arrays import Floats, Integers, Mask
from dlperf_study.logs.format import TRAINING


@dataclass(frozen=True)
class Records:
    """Columns of equal length, in the order of the lines.

    ``line``: its number in the log, from 1. ``training``: whether it speaks of training, not of validation.
    ``rank``, ``epoch``, ``step``: −1 where the line doesn't say. ``time_seconds``: the time printed with it, NaN where
    none is; Unix time, or since midnight of some day where the line bears no date. ``values``: by metric, in the unit
    of the metric; NaN where the line has none.
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

    def where(self, chosen: Mask | Integers) -> "Records":
        """Return some of the rows; all of them as they are."""
        if chosen.dtype == np.bool_ and chosen.all():
            return self
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        columns = {name: getattr(self, name)[chosen] for name in COLUMNS}
        return Records(**columns, values={name: column[chosen] for name, column in self.values.items()})

    def series(self, metric: str, window: str = TRAINING) -> "Records":
        """Return the rows of a window that hold a metric; none of a metric the log does not have."""
        return self.where(self.holding(metric, window))

    def holding(self, metric: str, window: str = TRAINING) -> Mask:
        """Say which rows of a window hold a metric."""
        if metric not in self.values:
            return np.zeros(len(self), dtype=bool)
        holding: Mask = (self.training == (window == TRAINING)) & ~np.isnan(self.values[metric])
        return holding


#: Every column but the values; and which of them say where in the training, and by whom, a line was printed.
COLUMNS = tuple(field.name for field in fields(Records) if field.name != "values")
PLACES = ("epoch", "step", "rank")


def records(line: Integers, values: Mapping[str, Floats], **places: NDArray) -> Records:  # type: ignore[type-arg]
    """Return rows; places not given are unknown."""
    size = line.size
    unknown = np.full(size, -1, dtype=np.int64)
    columns = {
        "training": np.ones(size, dtype=bool),
        "rank": unknown,
        "epoch": unknown,
        "step": unknown,
        "time_seconds": np.full(size, np.nan),
        **places,
    }
    return Records(line=line, values=values, **columns)


def joined(parts: Sequence[Records]) -> Records:
    """Return the rows of all parts in the order of the lines."""
    whole = parts[0] if len(parts) == 1 else _concatenated(parts or [records(np.empty(0, dtype=np.int64), {})])
    return whole if (np.diff(whole.line) >= 0).all() else whole.where(np.argsort(whole.line, kind="stable"))


def _concatenated(parts: Sequence[Records]) -> Records:
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    names = dict.fromkeys(name for part in parts for name in part.values)
    return Records(**columns, values={name: np.concatenate([_column(part, name) for part in parts]) for name in names})


def _column(part: Records, name: str) -> Floats:
    return part.values[name] if name in part.values else np.full(len(part), np.nan)


# What a block says in lines of one kind.


@dataclass(frozen=True)
class Found:
    """The records of some lines, and which lines they are.

    Lines are counted from 0. ``used``: those that were understood; ``candidates``: those with a needle;
    ``not_numbers``: those used that print a number as NaN.
    """

    rows: Records
    used: Integers
    candidates: Integers
    not_numbers: Integers

    @classmethod
    def nothing(cls, candidates: Integers) -> "Found":
        """Return that none of some candidates is used."""
        none = candidates[:0]
        return cls(records(none, {}), none, candidates, none)

    @property
    def usual_metrics(self) -> set[str]:
        """The metrics that most of its rows have."""
        return {name for name, column in self.rows.values.items() if 2 * (~np.isnan(column)).sum() > column.size}
