"""Lines of evaluation that look as those of training do: a number that is above 0 in training tells them apart."""

from dataclasses import replace

import numpy as np

from dlperf_study.logs.arrays import Mask
from dlperf_study.logs.format import Format
from dlperf_study.logs.records import Records


def evaluation_apart(rows: Records, format_: Format) -> Records:
    """Return the rows of a log, those of evaluation being none of training."""
    printed = rows.values.get(format_.zero_in_evaluation)
    if printed is None or not (printed == 0).any():
        return rows
    return replace(rows, training=rows.training & ~_evaluating(rows, printed == 0))


def _evaluating(rows: Records, zero: Mask) -> Mask:
    """Say which rows are of evaluation: those without the number, from the first that falls back behind training on.

    One that goes on where training is may be of it: a rate of learning that grows from 0, or falls to it, prints as 0.
    """
    if zero.all():
        return zero
    reached = np.maximum.accumulate(np.where(zero, -1, rows.step))
    back = np.where(zero, rows.step <= reached, False)
    rows_so_far = np.arange(zero.size)
    last_back = np.maximum.accumulate(np.where(back, rows_so_far, -1))
    last_trained = np.maximum.accumulate(np.where(zero, -1, rows_so_far))
    return zero & (last_back > last_trained)
