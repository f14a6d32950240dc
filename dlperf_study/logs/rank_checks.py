"""Checks whether the numbers of several ranks may be merged.

A rank that died is an error, not a smaller job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.core.arrays import Floats, Integers
from dlperf_study.core.errors import Diagnostic, LogError
from dlperf_study.core.wording import counted
from dlperf_study.logs.blocks import LogSource
from dlperf_study.logs.format import Format
from dlperf_study.logs.parsed_log import ParsedLog, StepIndex
from dlperf_study.logs.printed import MetricScope, PrintedMetric

#: By how much copies of the job's throughput may differ, because each rank has its own clock.
_ALLOWED_SPREAD = 0.1
#: By how much the throughput and the time of a step on one line may differ, besides the rounding of both.
_ALLOWED_ERROR = 0.05
#: At fewer steps, ranks may print the same throughput by chance.
_FEWEST_STEPS = 3
#: How many decimals are tried to find the last digit that a program prints, first on so many values.
_MOST_DECIMALS, _FIRST_VALUES = 9, 1000
#: By how many printed steps ranks, or repetitions, may end apart: a job is ended while some still print.
ALLOWED_STEPS_APART = 2


@dataclass(frozen=True)
class JobSize:
    """The size of the job, which a log may not state."""

    nodes: int
    devices_per_node: int
    batch_per_device: float
    devices_per_process: int = 1

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return self.world_size * self.devices_per_process

    @property
    def world_size(self) -> int:
        """The number of processes that print."""
        return self.nodes * self.devices_per_node


def common_format(logs: Sequence[ParsedLog]) -> Format:
    """Return the format of all logs; raises LogError for several."""
    formats = {log.format.name: log.format for log in logs}
    if len(formats) > 1:
        raise LogError(f"{logs[0].source} and the other ranks have different formats: {', '.join(sorted(formats))}")
    return logs[0].format


def common_throughput(logs: Sequence[ParsedLog]) -> str:
    """Return the throughput metric of all logs; raises LogError without one."""
    metrics, format_ = {log.throughput_metric for log in logs}, logs[0].format
    if not format_.throughput_metrics:
        raise LogError(f"{logs[0].source}: {format_.title} prints no number that gives the job's throughput")
    if len(metrics) > 1 or metrics == {""}:
        if metrics == {""} and format_.no_throughput_reason:
            raise LogError(f"{logs[0].source}: contains no throughput: {format_.no_throughput_reason}")
        names = ", ".join(sorted(metrics - {""})) or f"none of {', '.join(format_.throughput_metrics)}"
        raise LogError(f"{logs[0].source} and the other ranks have no throughput in common: {names}")
    return metrics.pop()


def refuse_several_runs(logs: Sequence[ParsedLog]) -> None:
    """Raise LogError if the steps of a log start over."""
    for log in logs:
        if log.restarts.size:
            reason = "several runs in one log, or a resumed run; state the part of each run in a metadata.yaml"
            raise LogError(f"{log.source}: steps start over at line {log.restarts[0]}: {reason}")


def refuse_contradictions(
    logs: Sequence[ParsedLog], metric: PrintedMetric, values: Floats, steps: StepIndex, job: JobSize
) -> None:
    """Raise LogError if throughputs differ or contradict the batch."""
    if metric.scope is not MetricScope.RANK:
        _refuse_different_copies(logs[0].source, metric, values, steps)
    throughput = logs[0].format.metrics.get("throughput")
    # If trainers don't step together, a throughput may leave out a part of the step.
    if throughput and throughput.unit == "samples/s" and logs[0].format.synchronous:
        batch = job.batch_per_device * (job.world_size if throughput.scope is MetricScope.JOB else 1)
        for log in logs:
            _refuse_other_batch(log, throughput.scope, batch)


def _refuse_different_copies(source: LogSource, metric: PrintedMetric, values: Floats, steps: StepIndex) -> None:
    is_shared = steps.counts > 1
    if not is_shared.any():
        return
    smallest, largest = steps.extremes(values)
    ratio = float(np.median(largest[is_shared] / smallest[is_shared]))
    if not ratio <= 1 + _ALLOWED_SPREAD:
        of_what = "the throughput of each device"
        if metric.scope is MetricScope.JOB:
            of_what = "the job's throughput"
        message = f"copies of {of_what} differ: at most steps the largest is {ratio:.2f} times the smallest"
        raise LogError(f"{source}: {message}")


def _refuse_other_batch(log: ParsedLog, scope: MetricScope, batch: float) -> None:
    records = log.series("throughput").series("step_seconds")
    if not len(records):
        return
    throughputs, seconds = records.values["throughput"], records.values["step_seconds"]
    printed_batch = float(np.median(throughputs * seconds))
    allowed = _ALLOWED_ERROR + _rounding_error(throughputs) + _rounding_error(seconds)
    if not abs(printed_batch / batch - 1) <= allowed:
        product = f"its throughput × seconds per step is {printed_batch:.6g} samples per step of one {scope}"
        raise LogError(f"{log.source}: {product}, but its metadata say {batch}")


def _rounding_error(values: Floats) -> float:
    """Return the largest relative rounding error, from the last decimal."""
    for decimals in range(_MOST_DECIMALS):
        # Most numbers of decimals are too few for the first values already.
        if _has_decimals(values[:_FIRST_VALUES], decimals) and _has_decimals(values, decimals):
            break
    else:
        decimals = _MOST_DECIMALS
    return float(0.5 * 10.0**-decimals / max(np.median(values), 1e-12))


def _has_decimals(values: Floats, decimals: int) -> bool:
    return np.allclose(values, values.round(decimals), rtol=0, atol=1e-12)


def rank_diagnostics(
    logs: Sequence[ParsedLog], metric: PrintedMetric, values: Floats, steps: StepIndex, job: JobSize
) -> Iterator[Diagnostic]:
    """Yield the diagnostics about the numbers of ranks."""
    if metric.scope is not MetricScope.RANK:
        return
    source = str(logs[0].source)
    for message in _represented_ranks(source, logs[0].format, steps, job):
        yield Diagnostic(source, message)
    fewest = steps.counts.min()
    if metric.name == "step_seconds" or steps.counts.size < _FEWEST_STEPS or fewest < 2:
        return
    smallest, largest = steps.extremes(values)
    if (smallest == largest).all():
        same = f"{fewest} ranks print exactly the same throughput at every step"
        yield Diagnostic(source, f"{same}: if it is the job's, their sum is {fewest} times too large")


def _represented_ranks(source: str, format_: Format, steps: StepIndex, job: JobSize) -> Iterator[str]:
    """Yield that some ranks represent all; raises LogError if they can't."""
    size, fewest, most = job.world_size, steps.counts.min(), steps.counts.max()
    if most > size:
        step = steps.step[np.argmax(steps.counts)]
        where = "a line without a step"
        if step >= 0:
            where = f"step {step}"
        raise LogError(f"{source}: {where} appears {most} times, in a job of {counted(size, 'rank')}")
    if fewest == size:
        return
    parts = [f"only {most} of {size} ranks printed"] if most < size else []
    if fewest < most:
        incomplete, all_steps = np.count_nonzero(steps.counts < most), counted(steps.counts.size, "step")
        parts.append(f"at {incomplete} of {all_steps} only {fewest} of {size} ranks printed")
    printed = ", and ".join(parts)
    if not format_.synchronous:
        may_share_process = most < size and size % most == 0
        remedy = ""
        if may_share_process:
            remedy = "; if one process drives several devices, state devices_per_process"
        reason = f"in {format_.title} one rank does not represent the others: the job's throughput is unknown{remedy}"
        raise LogError(f"{source}: {printed}, and {reason}")
    yield f"{printed}: they represent all, because the ranks step together"


def ranks_seen(logs: Sequence[ParsedLog]) -> int:
    """Return the number of ranks that printed."""
    return sum(_usual_count(log.throughput_steps.counts) for log in logs)


def silent_ranks(unreadable: Sequence[str], printing: int, job: JobSize) -> Iterator[str]:
    """Yield logs without training that are no silent ranks."""
    if unreadable and printing not in (1, job.nodes):
        reasons = "; ".join(unreadable)
        yield f"{len(unreadable)} of {printing + len(unreadable)} logs of ranks contain no training: {reasons}"


def truncated_ranks(logs: Sequence[ParsedLog]) -> Iterator[str]:
    """Yield the ranks that ended before others."""
    lines = {}
    for log in logs:
        lines[str(log.source)] = int(log.records.has_metric(log.throughput_metric).sum())
    longest = max(lines.values())
    for source, count in lines.items():
        if count < longest - ALLOWED_STEPS_APART:
            yield f"truncated: {source} has {counted(count, 'line')} of training, but another rank has {longest}"
    for log in logs:
        # A log that starts over prints some steps twice: no rank is missing at the others.
        if log.restarts.size:
            continue
        counts = log.throughput_steps.counts
        at_start = int(np.median(counts[:3])) if counts.size else 0
        expected = max(_usual_count(counts), at_start)
        fewer = int((counts < expected).sum())
        if fewer > ALLOWED_STEPS_APART:
            yield f"truncated: {fewer} of {counts.size} steps were printed by fewer than {expected} ranks"


def _usual_count(counts: Integers) -> int:
    """Return how often most steps appear."""
    if counts.size:
        return int(np.bincount(counts).argmax())
    return 1
