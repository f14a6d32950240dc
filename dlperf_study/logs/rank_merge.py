"""Merges the numbers of ranks into the throughput of the job.

| scope of the number | rule |
|---|---|
| job | the median of the copies printed at a step |
| job, a time | global batch / that |
| job, the time of an epoch, or of a sample | 1 / that |
| each device | the median of the copies × the number of devices |
| job, steps per second of all nodes | that × batch per device × devices per node |
| rank, a throughput | the ranks' mean × their number, which is their sum where all printed |
| rank, a time, synchronous | batch per device × devices / the slowest rank's time |
| rank, a time, not synchronous | the sum over all ranks of batch per device / time |

If ranks step together and only some printed, each of these represents the others, with a diagnostic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlperf_study.core.arrays import Floats, Integers, Mask, constant
from dlperf_study.core.errors import Diagnostic
from dlperf_study.logs import rank_checks
from dlperf_study.logs.format import Format, Merge
from dlperf_study.logs.parsed_log import ParsedLog, StepIndex, index_steps
from dlperf_study.logs.printed import EPOCH_SECONDS, SAMPLE_SECONDS, MetricScope, PrintedMetric
from dlperf_study.logs.records import Records, merge_records

#: Times whose inverse is a throughput, and its unit; that of other times counts samples, by the batch.
_UNITS = {EPOCH_SECONDS.name: "epochs/s", SAMPLE_SECONDS.name: "samples/s"}


@dataclass(frozen=True)
class JobSeries:
    """The throughput of the job at each printed step, in order.

    ``time_seconds``: when the last rank printed it, or NaN. ``unit``: of the job's throughput. ``metric``: the printed
    metric of ``rule``.
    """

    epoch: Integers
    step: Integers
    throughput: Floats
    time_seconds: Floats
    unit: str
    metric: PrintedMetric
    rule: str
    diagnostics: tuple[Diagnostic, ...]


def job_series(logs: Sequence[ParsedLog], job: rank_checks.JobSize, name: str = "") -> JobSeries:
    """Return the job's throughput at every step, by the best or named metric."""
    format_, name = rank_checks.common_format(logs), name or rank_checks.common_throughput(logs)
    rank_checks.refuse_several_runs(logs)
    metric = format_.metrics.get(name, PrintedMetric(name, "", MetricScope.JOB))
    for fact, values_of_devices in format_.device_throughput_facts.items():
        if logs[0].facts.get(fact) in values_of_devices:
            metric = replace(metric, scope=MetricScope.DEVICE)
    parts = []
    for index, log in enumerate(logs):
        declared_rank = log.integer_fact("rank")
        # Where neither a line nor its log names a rank, a number below −1 tells the logs apart.
        rank = declared_rank if declared_rank is not None else -2 - index
        is_unknown = log.records.rank < 0
        ranks = constant(rank, is_unknown.size) if is_unknown.all() else np.where(is_unknown, rank, log.records.rank)
        parts.append(replace(log.records, rank=ranks))
    rows = _remove_repeated_lines(merge_records(parts).series(name))
    rows = _keep_latest_means(rows, metric)
    values, steps = rows.values[name], index_steps(rows.epoch, rows.step)
    rank_checks.refuse_contradictions(logs, metric, values, steps, job)
    diagnostics = tuple(rank_checks.rank_diagnostics(logs, metric, values, steps, job))
    rule, throughput = _merge_ranks(format_, metric, values, steps, job)
    unit = metric.unit if name.endswith("throughput") else _UNITS.get(name, "samples/s")
    times = steps.latest(rows.time_seconds)
    return JobSeries(steps.epoch, steps.step, throughput, times, unit, metric, rule, diagnostics)


def _remove_repeated_lines(rows: Records) -> Records:
    """Drop lines that repeat the line before."""
    if len(rows) < 2:
        return rows
    is_repeated = (rows.step[1:] >= 0) & (_equals_row_before(rows.time_seconds) | (rows.rank[1:] >= 0))
    for column in (rows.step, rows.rank, rows.epoch, *rows.values.values()):
        if not is_repeated.any():
            return rows
        is_repeated &= _equals_row_before(column)
    return rows.select(np.concatenate(([True], ~is_repeated)))


def _keep_latest_means(rows: Records, metric: PrintedMetric) -> Records:
    """Keep each rank's last cumulative mean of a step or epoch."""
    if not metric.cumulative or not len(rows):
        return rows
    steps = constant(-1, len(rows)) if metric.restarts_each_epoch else rows.step
    keys = np.stack((rows.rank, rows.epoch, steps))[:, ::-1]
    _, latest = np.unique(keys, axis=1, return_index=True)
    return rows.select(np.sort(len(rows) - 1 - latest))


def _equals_row_before(column: NDArray[np.number]) -> Mask:
    """Return which rows equal the row before, or miss both values."""
    before, after = column[:-1], column[1:]
    equal: Mask = (after == before) | (np.isnan(after) & np.isnan(before))
    return equal


def _merge_ranks(
    format_: Format, metric: PrintedMetric, values: Floats, steps: StepIndex, job: rank_checks.JobSize
) -> tuple[str, Floats]:
    """Return the rule, and the job's throughput at each step."""
    if metric.unit == "steps/s":
        batch_per_node = job.devices_per_node * job.batch_per_device
        return "steps/s × batch per device × devices per node", steps.medians(values) * batch_per_node
    if metric.name in _UNITS:
        return f"1 / the seconds of one, in {_UNITS[metric.name]}", _throughputs(1, steps.medians(values))
    if metric.scope is MetricScope.DEVICE:
        copies = "the median of the copies"
        if steps.counts.max() == 1:
            copies = "the number of a device"
        return f"{copies} × the number of devices", steps.medians(values) * job.devices
    if metric.scope is MetricScope.JOB and metric.name.endswith("step_seconds"):
        return "global batch / the job's step", _throughputs(
            job.batch_per_device * job.world_size, steps.medians(values)
        )
    if metric.scope is not MetricScope.RANK:
        rule = format_.merge
        if steps.counts.max() == 1 and rule is not Merge.AS_NAMED:
            rule = Merge.ONE
        elif rule in (Merge.SUM, Merge.SLOWEST):
            # Most of these programs print the number of the whole job next to those of ranks.
            rule = Merge.COPIES
        return str(rule), steps.medians(values)
    if not metric.name.endswith("step_seconds"):
        return "the ranks' mean × their number", steps.means(values) * job.world_size
    if format_.synchronous:
        _, slowest = steps.extremes(values)
        global_batch = job.batch_per_device * job.world_size
        return "global batch / the slowest rank's step", _throughputs(global_batch, slowest)
    return "the sum over ranks of batch / step", steps.sums(_throughputs(job.batch_per_device, values))


def _throughputs(batch: float, seconds: Floats) -> Floats:
    """Return batch / time; NaN for a time of 0."""
    with np.errstate(over="ignore"):
        throughputs: Floats = np.divide(batch, seconds, out=np.full(seconds.size, np.nan), where=seconds != 0)
    return throughputs
