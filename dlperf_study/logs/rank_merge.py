"""From what ranks printed to the rate of the whole job, by the rule of their format; or the reason why not.

| scope of the number | rule |
|---|---|
| job | the median of the copies printed at a step |
| job, steps per second of all nodes | that × batch per device × devices per node |
| rank, a rate | the ranks' mean × their number, which is their sum where all printed |
| rank, a time, synchronous | batch per device × devices / the slowest rank's time |
| rank, a time, not synchronous | the sum over all ranks of batch per device / time |

Where ranks step together and only some of them printed, each of these stands for the others, and a diagnostic says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlperf_study.arrays import Floats, Integers, Mask
from dlperf_study.diagnostic import Diagnostic
from dlperf_study.errors import LogError
from dlperf_study.logs.cross_checks import copies_apart, rate_against_time, same_digits
from dlperf_study.logs.format import Format, Merge, Metric, Scope
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.records import Records, joined
from dlperf_study.logs.step_index import Places, places_of, restarts
from dlperf_study.wording import counted

# What a job ran on, as whoever has its logs states it.


@dataclass(frozen=True)
class Devices:
    """What a log may not say of the job that printed it, and its rate depends on."""

    nodes: int
    devices_per_node: int
    batch_per_device: int

    @property
    def world_size(self) -> int:
        """How many ranks there are; one that drives several devices counts as one, with the batch of them all."""
        return self.nodes * self.devices_per_node


# May the logs of some ranks be made the job's? What they must have in common, and who must have printed.


def common_format(readings: Sequence[Reading]) -> Format:
    """Return the format of all logs; raises LogError where there are several."""
    formats = {reading.format.name: reading.format for reading in readings}
    if len(formats) > 1:
        raise LogError(f"{readings[0].source} and its siblings are of different formats: {', '.join(sorted(formats))}")
    return readings[0].format


def common_rate(readings: Sequence[Reading]) -> str:
    """Return the metric that all logs have for the job's rate; raises LogError where there is none."""
    metrics, format_ = {reading.rate_metric for reading in readings}, readings[0].format
    if not format_.rates:
        raise LogError(f"{readings[0].source}: {format_.title} prints nothing from which the job's rate can be had")
    if len(metrics) > 1 or metrics == {""}:
        said = ", ".join(sorted(metrics - {""})) or f"none of {', '.join(format_.rates)}"
        raise LogError(f"{readings[0].source} and its siblings hold no rate in common: {said}")
    return metrics.pop()


def refuse_several_runs(readings: Sequence[Reading]) -> None:
    """Raise LogError where the steps of a log start over."""
    for reading in readings:
        lines = restarts(reading.records)
        if lines.size:
            where = f"steps start over at line {lines[0]}"
            raise LogError(f"{reading.source}: {where}: several runs in one log, or a resumed one")


def refuse_contradictions(
    readings: Sequence[Reading], metric: Metric, values: Floats, places: Places, devices: Devices
) -> None:
    """Raise LogError where copies of the job's rate lie apart, or a log's own rates and times don't make its batch."""
    format_, batch = readings[0].format, devices.batch_per_device
    if metric.scope is Scope.JOB:
        for said in copies_apart(values, places):
            raise LogError(f"{readings[0].source}: {said}")
    for said in rate_against_time(readings, format_, {Scope.RANK: batch, Scope.JOB: batch * devices.world_size}):
        raise LogError(said)


def rank_diagnostics(
    readings: Sequence[Reading], metric: Metric, values: Floats, places: Places, devices: Devices
) -> Iterator[Diagnostic]:
    """Yield the diagnostics about the numbers of ranks.

    Raises:
        LogError: there are too many of them, or too few of ranks that don't step together.

    """
    if metric.scope is not Scope.RANK:
        return
    source = str(readings[0].source)
    yield from (Diagnostic(source, said) for said in _some_for_all(source, readings[0].format, places, devices))
    if metric.name != "step_seconds":
        yield from (Diagnostic(source, said) for said in same_digits(values, places))


def _some_for_all(source: str, format_: Format, places: Places, devices: Devices) -> Iterator[str]:
    """Yield that some ranks stand for all; raises LogError where they can't, or there are too many."""
    size, most = devices.world_size, places.counts.max()
    if most > size:
        step = places.step[np.argmax(places.counts)]
        where = f"step {step}" if step >= 0 else "a line that names no step"
        raise LogError(f"{source}: {where} stands there {most} times, in a job of {counted(size, 'rank')}")
    if places.counts.min() == size:
        return
    said = _who_printed(places, size)
    if not format_.synchronous:
        shared = most < size and size % most == 0
        remedy = "; if one process drives several devices, state devices_per_process" if shared else ""
        none = f"in {format_.title} none stands for the others: the job's rate is unknown{remedy}"
        raise LogError(f"{source}: {said}, and {none}")
    yield f"{said}: they stand for all, since the ranks step together"


def _who_printed(places: Places, size: int) -> str:
    """Return in words how many ranks are silent, and at how many steps others are too."""
    fewest, most = places.counts.min(), places.counts.max()
    silent = f"only {most} of {size} ranks printed" if most < size else ""
    lacking, steps = np.count_nonzero(places.counts < most), counted(places.counts.size, "step")
    some = f"at {lacking} of {steps} only {fewest} of {size} ranks printed" if fewest < most else ""
    return ", and ".join(filter(None, (silent, some)))


@dataclass(frozen=True)
class JobSeries:
    """The rate of the whole job at each printed step, in the order of the steps. ``rule``: how it was had, in words."""

    epoch: Integers
    step: Integers
    rate: Floats
    unit: str
    metric: str
    rule: str
    diagnostics: tuple[Diagnostic, ...]


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
    diagnostics = tuple(rank_diagnostics(readings, metric, values, places, devices))
    rule, rate = _merged(format_, metric, values, places, devices)
    unit = metric.unit if name.endswith("throughput") else "samples/s"
    return JobSeries(places.epoch, places.step, rate, unit, name, rule, diagnostics)


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


def _merged(format_: Format, metric: Metric, values: Floats, places: Places, devices: Devices) -> tuple[str, Floats]:
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


def _per(batch: int, seconds: Floats) -> Floats:
    """Return a batch over times; NaN where a time is 0, which is no time of a step, infinite where it is nearly."""
    with np.errstate(over="ignore"):
        rates: Floats = np.divide(batch, seconds, out=np.full(seconds.size, np.nan), where=seconds != 0)
    return rates
