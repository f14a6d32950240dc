"""Completes the records of programs that print a number only once for several lines, or the time since the start."""

from dataclasses import replace

import numpy as np

from dlperf_study.arrays import Floats, Mask
from dlperf_study.logs.format import INTERVALS, Format
from dlperf_study.logs.records import Records


def carry_epochs(records: Records) -> Records:
    """Give a row without an epoch that of the last row before it that has one.

    Rows before the first epoch, and those whose step does not continue the epoch, are of an evaluation: left out.
    """
    rows_with_epoch = np.where(records.epoch >= 0, np.arange(len(records)), -1)
    last = np.maximum.accumulate(rows_with_epoch) if len(records) else rows_with_epoch
    is_carried = (records.epoch < 0) & (last >= 0)
    carried = replace(records, epoch=np.where(is_carried, records.epoch[last], records.epoch))
    of_epochs = carried.select(carried.epoch >= 0)
    return of_epochs.select(_continues_its_epoch(of_epochs))


def _continues_its_epoch(records: Records) -> Mask:
    """Return which rows have no step, or one after all those since the last row that names an epoch."""
    continues = np.ones(len(records), dtype=bool)
    latest = -1
    for row, step in enumerate(records.step.tolist()):
        latest = -1 if step < 0 else latest
        continues[row] = step < 0 or step > latest
        latest = max(latest, step)
    return continues


def with_intervals(records: Records) -> Records:
    """Add the time of one step, or epoch, where the lines have the time since the start."""
    values = dict(records.values)
    for elapsed, interval in INTERVALS.items():
        if elapsed in values:
            values[interval.name] = _intervals(records, values[elapsed])
    return replace(records, values=values) if len(values) > len(records.values) else records


def without_false_steps(records: Records, format_: Format) -> Records:
    """Return the records without those of the first steps, if their numbers are not those of a step."""
    return records.select((records.step < 0) | (records.step >= format_.first_true_step))


def _intervals(records: Records, elapsed: Floats) -> Floats:
    """Return the seconds per step since the line before of the same rank; NaN in its first line.

    NaN also where no step passed, or no time: the program set its clock to 0, as some do after a few steps.
    """
    intervals = np.full(elapsed.size, np.nan)
    for rank in np.unique(records.rank):
        rows = np.flatnonzero((records.rank == rank) & records.training & ~np.isnan(elapsed))
        steps, seconds = np.diff(records.step[rows]), np.diff(elapsed[rows])
        advances = (steps > 0) & (seconds > 0)
        intervals[rows[1:][advances]] = seconds[advances] / steps[advances]
    return intervals
