"""The content of one log: records, steps, facts and diagnostics.

Some programs print a number once for several lines, or the same lines in evaluation: the records are completed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

import numpy as np

from dlperf_study.core.arrays import Floats, Integers, Mask, constant, elements, median
from dlperf_study.core.errors import Diagnostic, LogError
from dlperf_study.core.wording import counted
from dlperf_study.logs.blocks import LogSource
from dlperf_study.logs.format import Format, Merge
from dlperf_study.logs.printed import INTERVALS
from dlperf_study.logs.records import Records

#: Longer integers count no steps and no devices.
_LONGEST_INTEGER = 15
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SWITCHES = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off", "none"), False),
}
#: By how many printed steps one rank may be ahead of another in the same log.
_ALLOWED_DISORDER = 3


@dataclass(frozen=True)
class StepIndex:
    """The distinct (epoch, step) pairs of rows, in order.

    ``counts``: the rows of each pair. ``shared_groups``: the pair of each row; None if each row has a pair of its own,
    in order.
    """

    epoch: Integers
    step: Integers
    counts: Integers
    shared_groups: Integers | None

    @property
    def group(self) -> Integers:
        """The index of the pair of each row."""
        if self.shared_groups is None:
            return np.arange(self.step.size)
        return self.shared_groups

    def ordered(self, values: Floats) -> tuple[Floats, Integers]:
        """Return values ordered by step and size, and the steps' starts."""
        if self.shared_groups is None:
            return values, np.arange(values.size)
        keys = (values, self.group) if (self.counts > 1).any() else (self.group,)
        return values[np.lexsort(keys)], np.cumsum(self.counts) - self.counts

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest value of each step."""
        if self.shared_groups is None:
            return values, values
        ordered, starts = self.ordered(values)
        return ordered[starts], ordered[starts + self.counts - 1]

    def latest(self, times: Floats) -> Floats:
        """Return the largest value of each step, without NaN."""
        if self.shared_groups is None:
            return times
        if self.group.size == self.counts.size:
            latest = np.empty_like(times)
            latest[self.group] = times
            return latest
        ordered = times[np.argsort(self.group, kind="stable")]
        return np.fmax.reduceat(ordered, np.cumsum(self.counts) - self.counts)

    def medians(self, values: Floats) -> Floats:
        """Return the median of the values of each step."""
        if self.shared_groups is None:
            return values
        ordered, starts = self.ordered(values)
        middle: Floats = (ordered[starts + (self.counts - 1) // 2] + ordered[starts + self.counts // 2]) / 2
        return middle

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each step."""
        if self.shared_groups is None:
            return values
        return np.bincount(self.group, weights=values).astype(np.float64)

    def means(self, values: Floats) -> Floats:
        """Return the mean of the values of each step."""
        means: Floats = self.sums(values) / self.counts
        return means


def index_steps(epochs: Integers, steps: Integers) -> StepIndex:
    """Return the index of the (epoch, step) pairs of rows."""
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


@dataclass(frozen=True)
class ParsedLog:
    """One parsed log; ``facts``: statements about the whole run by name."""

    source: LogSource
    format: Format
    records: Records
    facts: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...]
    lines: int

    @cached_property
    def throughput_metric(self) -> str:
        """Its best metric for the job's throughput, or empty."""
        return next((name for name in self.format.throughput_metrics if self.records.has_metric(name).any()), "")

    @cached_property
    def throughput_steps(self) -> StepIndex:
        """The steps with a throughput."""
        records = self.records
        rows = records.has_metric(self.throughput_metric) & (records.step >= 0)
        return index_steps(elements(records.epoch, rows), elements(records.step, rows))

    @cached_property
    def restarts(self) -> Integers:
        """The lines at which the training of a rank starts over.

        Ranks that share a stream without names mix within a few steps; a step that goes back by more than
        _ALLOWED_DISORDER printed steps is a restart.
        """
        return np.sort(np.concatenate([self.records.line[:0], *self._restarts_of_ranks]))

    def part(self, number: int) -> "ParsedLog":
        """Return one of its consecutive runs, from 1; raises LogError."""
        starts = []
        for lines in zip_longest(*self._restarts_of_ranks, fillvalue=self.lines + 1):
            starts.append(min(lines))
        if number > len(starts) + 1:
            raise LogError(f"{self.source}: has {counted(len(starts) + 1, 'run')}, but no part {number}")
        first, end = [0, *starts, self.lines + 1][number - 1 : number + 1]
        line = self.records.line
        return replace(self, records=self.records.select((line >= first) & (line < end)))

    @cached_property
    def _restarts_of_ranks(self) -> list[Integers]:
        """The lines of restarts, by rank."""
        records = self.records
        rows = records.select((records.step >= 0) & records.training)
        is_same_epoch = rows.epoch[1:] == rows.epoch[:-1]
        if not ((rows.epoch[1:] < rows.epoch[:-1]) | (is_same_epoch & (rows.step[1:] < rows.step[:-1]))).any():
            return []
        # Where one rank prints, nothing mixes.
        allowed = _ALLOWED_DISORDER
        if self.format.merge is Merge.ONE:
            allowed = 0
        restarts = []
        for rank in np.unique(rows.rank):
            rows_of_rank = rows.select(rows.rank == rank)
            order = index_steps(rows_of_rank.epoch, rows_of_rank.step).group
            restarts.append(rows_of_rank.line[1:][order[:-1] - order[1:] > allowed])
        return restarts

    def series(self, metric: str) -> Records:
        """Return the records of training that have a metric."""
        return self.records.series(metric)

    def integer_fact(self, name: str) -> int | None:
        """Return a fact that is an integer, or None."""
        value = _THOUSANDS.sub("", self.facts.get(name, ""))
        is_integer = value.isascii() and value.isdigit() and len(value) <= _LONGEST_INTEGER
        return int(value) if is_integer else None

    def switch(self, name: str) -> bool | None:
        """Return an on/off fact as a boolean, or None."""
        return _SWITCHES.get(self.facts.get(name, "").lower())


def cumulative_steps(steps: Integers) -> Integers:
    """Return the steps until each line, with usual distances at restarts."""
    distances = np.diff(steps)
    if (distances > 0).all():
        return steps
    usual = median(distances[distances > 0]) if (distances > 0).any() else max(1, int(steps.max()))
    distances = np.where(distances > 0, distances, usual).astype(np.int64)
    positions: Integers = np.concatenate((steps[:1], steps[:1] + np.cumsum(distances)))
    return positions


def carry_steps(records: Records) -> Records:
    """Give rows without a step the last epoch and step."""
    last, is_carried = _last_known(records.step)
    step = np.where(is_carried, records.step[last], records.step)
    epoch = np.where(is_carried & (records.epoch < 0), records.epoch[last], records.epoch)
    return replace(records, step=step, epoch=epoch)


def carry_epochs(records: Records) -> Records:
    """Give rows without an epoch the last epoch.

    Rows before the first epoch, and rows whose step does not continue the epoch, belong to an evaluation and are
    dropped.
    """
    last, is_carried = _last_known(records.epoch)
    carried = replace(records, epoch=np.where(is_carried, records.epoch[last], records.epoch))
    of_epochs = carried.select(carried.epoch >= 0)
    continues = np.ones(len(of_epochs), dtype=bool)
    latest = -1
    for row, step in enumerate(of_epochs.step.tolist()):
        # A row without a step names an epoch.
        latest = -1 if step < 0 else latest
        continues[row] = step < 0 or step > latest
        latest = max(latest, step)
    return of_epochs.select(continues)


def _last_known(positions: Integers) -> tuple[Integers, Mask]:
    """Return the last row with a position, and the rows that need it."""
    known = np.where(positions >= 0, np.arange(positions.size), -1)
    last: Integers = np.maximum.accumulate(known) if known.size else known
    return last, (positions < 0) & (last >= 0)


def add_intervals(records: Records) -> Records:
    """Add the time per step or epoch from times since the start."""
    values = dict(records.values)
    for elapsed, interval in INTERVALS.items():
        if elapsed not in values:
            continue
        intervals = np.full(len(records), np.nan)
        for rank in np.unique(records.rank):
            rows = np.flatnonzero((records.rank == rank) & records.training & ~np.isnan(values[elapsed]))
            steps, seconds = np.diff(records.step[rows]), np.diff(values[elapsed][rows])
            advances = (steps > 0) & (seconds > 0)
            intervals[rows[1:][advances]] = seconds[advances] / steps[advances]
        values[interval.name] = intervals
    if len(values) > len(records.values):
        return replace(records, values=values)
    return records


def remove_false_steps(records: Records, format_: Format) -> Records:
    """Drop the first steps if their numbers are wrong."""
    return records.select((records.step < 0) | (records.step >= format_.first_true_step))


def mark_evaluation(records: Records, format_: Format) -> Records:
    """Mark lines of evaluation that look like training.

    See ``zero_in_evaluation``. Rows with 0 are of evaluation from the first on whose step goes back behind training: a
    learning rate that is printed as 0 may be of training.
    """
    values = records.values.get(format_.zero_in_evaluation)
    if values is None or not (values == 0).any():
        return records
    is_zero = values == 0
    if is_zero.all():
        return replace(records, training=records.training & ~is_zero)
    reached_step = np.maximum.accumulate(np.where(is_zero, -1, records.step))
    goes_back = np.where(is_zero, records.step <= reached_step, False)
    rows = np.arange(is_zero.size)
    last_back = np.maximum.accumulate(np.where(goes_back, rows, -1))
    last_training = np.maximum.accumulate(np.where(is_zero, -1, rows))
    return replace(records, training=records.training & ~(is_zero & (last_back > last_training)))
