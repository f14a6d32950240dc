"""May the logs of some ranks be made the job's? What they must have in common, and who must have printed."""

from collections.abc import Iterator, Sequence

import numpy as np

from dlperf_study.errors import LogError
from dlperf_study.logs.arrays import Real
from dlperf_study.logs.complaint import Complaint
from dlperf_study.logs.cross_checks import copies_apart, rate_against_time, same_digits
from dlperf_study.logs.devices import Devices
from dlperf_study.logs.format import Format, Metric, Scope
from dlperf_study.logs.places import Places, restarts
from dlperf_study.logs.reading import Reading
from dlperf_study.study.words import counted


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
    readings: Sequence[Reading], metric: Metric, values: Real, places: Places, devices: Devices
) -> None:
    """Raise LogError where copies of the job's rate lie apart, or a log's own rates and times don't make its batch."""
    format_, batch = readings[0].format, devices.batch_per_device
    if metric.scope is Scope.JOB:
        for said in copies_apart(values, places):
            raise LogError(f"{readings[0].source}: {said}")
    for said in rate_against_time(readings, format_, {Scope.RANK: batch, Scope.JOB: batch * devices.world_size}):
        raise LogError(said)


def rank_complaints(
    readings: Sequence[Reading], metric: Metric, values: Real, places: Places, devices: Devices
) -> Iterator[Complaint]:
    """Yield the doubts about the numbers of ranks.

    Raises:
        LogError: there are too many of them, or too few of ranks that don't step together.

    """
    if metric.scope is not Scope.RANK:
        return
    source = str(readings[0].source)
    yield from (Complaint(source, said) for said in _some_for_all(source, readings[0].format, places, devices))
    if metric.name != "step_seconds":
        yield from (Complaint(source, said) for said in same_digits(values, places))


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
