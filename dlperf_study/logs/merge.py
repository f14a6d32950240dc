"""From what ranks printed to the rate of the whole job, by the rule of their format; or the reason why not.

| scope of the number | rule |
|---|---|
| job | the median of the copies printed at a step |
| job, steps per second of all nodes | that × batch per device × devices per node |
| rank, a rate | the ranks' mean × their number, which is their sum where all printed |
| rank, a time, synchronous | batch per device × devices / the slowest rank's time |
| rank, a time, not synchronous | the sum over all ranks of batch per device / time |

Where ranks step together and only some of them printed, each of these stands for the others, and a complaint says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlperf_study.logs.arrays import Mask, Real, Whole
from dlperf_study.logs.complaint import Complaint
from dlperf_study.logs.devices import Devices
from dlperf_study.logs.format import Format, Merge, Metric, Scope
from dlperf_study.logs.mergeable import (
    common_format,
    common_rate,
    rank_complaints,
    refuse_contradictions,
    refuse_several_runs,
)
from dlperf_study.logs.places import Places, places_of
from dlperf_study.logs.reading import Reading
from dlperf_study.logs.records import Records, joined


@dataclass(frozen=True)
class JobSeries:
    """The rate of the whole job at each printed step, in the order of the steps. ``rule``: how it was had, in words."""

    epoch: Whole
    step: Whole
    rate: Real
    unit: str
    metric: str
    rule: str
    complaints: tuple[Complaint, ...]


def job_series(readings: Sequence[Reading], devices: Devices) -> JobSeries:
    """Return the job's rate at every step that its logs hold, each log that of some ranks.

    Raises:
        LogError: the logs are of different formats, hold no rate, or too few ranks printed to know the job's.

    """
    format_, name = common_format(readings), common_rate(readings)
    refuse_several_runs(readings)
    metric = format_.metrics.get(name, Metric(name, "", Scope.JOB))
    rows = _distinct(joined([_numbered(reading, k) for k, reading in enumerate(readings)]).series(name))
    values, places = rows.values[name], places_of(rows.epoch, rows.step)
    refuse_contradictions(readings, metric, values, places, devices)
    complaints = tuple(rank_complaints(readings, metric, values, places, devices))
    rule, rate = _merged(format_, metric, values, places, devices)
    unit = metric.unit if name.endswith("throughput") else "samples/s"
    return JobSeries(places.epoch, places.step, rate, unit, name, rule, complaints)


def _numbered(reading: Reading, index: int) -> Records:
    """Return the records with the rank that the log states where no line names one; without that, with one below −1."""
    rows, stated = reading.records, reading.fact("rank")
    own = stated if stated is not None else -2 - index
    return replace(rows, rank=np.where(rows.rank < 0, own, rows.rank))


def _distinct(rows: Records) -> Records:
    """Leave out lines that only repeat the line before: some programs print a rate once per measure of quality.

    Of ranks without a name, two may print the same, but not at the same time.
    """
    if len(rows) < 2:
        return rows
    again = (rows.step[1:] >= 0) & (_equal(rows.time_seconds) | (rows.rank[1:] >= 0))
    for column in (rows.step, rows.rank, rows.epoch, *rows.values.values()):
        if not again.any():
            return rows
        again &= _equal(column)
    return rows.where(np.concatenate(([True], ~again)))


def _equal(column: NDArray[np.number]) -> Mask:
    """Say where a column is as it was a row before; what is missing in both is."""
    one, other = column[1:], column[:-1]
    same: Mask = (one == other) | (np.isnan(one) & np.isnan(other))
    return same


def _merged(format_: Format, metric: Metric, values: Real, places: Places, devices: Devices) -> tuple[str, Real]:
    """Return the rule in words, and the job's rate of each step."""
    if metric.name == "steps_per_second":
        per_trainer = devices.devices_per_node * devices.batch_per_device
        return "steps/s × batch per device × devices per node", places.medians(values) * per_trainer
    if metric.scope is not Scope.RANK:
        return str(_rule_of_job(format_, places)), places.medians(values)
    if not metric.name.endswith("step_seconds"):
        return "the ranks' mean × their number", places.means(values) * devices.world_size
    if format_.synchronous:
        _, slowest = places.extremes(values)
        return "global batch / the slowest rank's step", _per(devices.batch_per_device * devices.world_size, slowest)
    return "the sum over ranks of batch / step", places.sums(_per(devices.batch_per_device, values))


def _rule_of_job(format_: Format, places: Places) -> Merge:
    """Return how a number of the whole job was had; most of these programs print it beside those of ranks."""
    if format_.merge not in (Merge.SUM, Merge.SLOWEST):
        return format_.merge
    return Merge.ONE if places.counts.max() == 1 else Merge.COPIES


def _per(batch: int, seconds: Real) -> Real:
    """Return a batch over times; NaN where a time is 0, which is no time of a step, infinite where it is nearly."""
    with np.errstate(over="ignore"):
        rates: Real = np.divide(batch, seconds, out=np.full(seconds.size, np.nan), where=seconds != 0)
    return rates
