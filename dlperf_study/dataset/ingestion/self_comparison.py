"""A log against itself: its throughputs, times and clocks must give one throughput of the job.

No pandas: worker processes import this.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dlperf_study.core.arrays import Floats, median
from dlperf_study.core.errors import Diagnostic, LogError, Severity
from dlperf_study.dataset.ingestion.job_throughputs import Throughputs, samples_per_unit
from dlperf_study.logs.log_reader import other_formats, read_log
from dlperf_study.logs.metadata import LogMetadata
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.logs.rank_merge import job_series

#: By which factor what a log states twice may differ, and from which on it is no log of one run.
_NOTICED, _REFUSED = 1.1, 1.5
BY_CLOCK = "wall_throughput"
#: Means of an epoch have its first steps, which other numbers may leave out.
_OF_EPOCHS = "epoch_"


@dataclass(frozen=True)
class _Statement:
    """A job's throughput, its origin, all-lines throughput, and diagnostic subject."""

    throughput: float
    origin: str
    with_stalls: float
    subject: str = "throughput"

    def factor_to(self, other: "_Statement") -> float:
        """Return the factor that neither start-up nor stalls explain."""
        lowest, other_lowest = min(self.throughput, self.with_stalls), min(other.throughput, other.with_stalls)
        highest, other_highest = max(self.throughput, self.with_stalls), max(other.throughput, other.with_stalls)
        return max(lowest / other_highest, other_lowest / highest)


def self_contradictions(
    logs: Sequence[ParsedLog], metadata: LogMetadata, throughputs: Throughputs
) -> Iterator[Diagnostic]:
    """Yield the number that most contradicts the throughput, unless explained."""
    used = _Statement(
        throughputs.steady.window.wall_throughput,
        f"the number that is used, {throughputs.printed}",
        _of_all(throughputs.throughput),
    )
    second_throughputs = list(_by_other_numbers(logs, metadata, throughputs))
    # The throughput between the times of ordinary lines, where it differs and steps are known to be updates.
    if logs[0].format.counts_updates and throughputs.wall and np.isfinite(throughputs.wall.ordinary):
        origin = f"the times of ordinary lines, with {metadata.global_batch} samples per step"
        second_throughputs.insert(0, _Statement(throughputs.wall.ordinary, origin, throughputs.wall.ordinary, BY_CLOCK))
    worst = max(second_throughputs, key=used.factor_to, default=used)
    factor = used.factor_to(worst)
    if factor > _NOTICED:
        both = "; ".join(f"{entry.throughput:.6g} {throughputs.unit} by {entry.origin}" for entry in (worst, used))
        severity = Severity.ERROR if factor > _REFUSED else Severity.WARNING
        yield Diagnostic(worst.subject, f"the log contradicts itself: {both}", severity)


def _of_all(throughputs: Floats) -> float:
    return float(throughputs.size / (1 / throughputs).sum())


def _by_other_numbers(
    logs: Sequence[ParsedLog], metadata: LogMetadata, throughputs: Throughputs
) -> Iterator[_Statement]:
    """Yield the throughputs by all other numbers of these logs."""
    first = logs[0].format
    # A worker of servers, or a trainer that doesn't wait for others, prints what it does itself.
    # What a mean has of the start-up is not known of another.
    used = first.metrics.get(logs[0].throughput_metric)
    if metadata.parameters["parameter_servers"] or not first.synchronous or (used and used.cumulative):
        return
    for name in first.throughput_metrics:
        is_comparable = name != logs[0].throughput_metric and not name.startswith(_OF_EPOCHS)
        if is_comparable and all(len(log.series(name)) for log in logs):
            yield from _statement(logs, metadata, throughputs, name)
    # Where no format is named, a log of several is refused.
    is_named = metadata.extras.format or logs[0].source.own_format
    for format_ in other_formats(logs[0]) if is_named else ():
        with suppress(LogError):
            same_logs = [read_log(log.source, format_.name) for log in logs]
            yield from _statement(same_logs, metadata, throughputs, "")


def _statement(
    logs: Sequence[ParsedLog], metadata: LogMetadata, throughputs: Throughputs, name: str
) -> Iterator[_Statement]:
    """Yield the throughput by one metric or second format, if any."""
    with suppress(LogError):
        series = job_series(logs, metadata.job_size, name)
        samples, unit = samples_per_unit(series.unit, metadata.extras, logs[0].source)
        usable = series.throughput[np.isfinite(series.throughput) & (series.throughput > 0)] * samples
        if unit == throughputs.unit and usable.size and not series.metric.restarts_each_epoch:
            throughput, with_stalls = median(usable), _of_all(usable)
            if series.metric.cumulative:
                throughput = with_stalls = float(usable[-1])
            origin = f"{series.metric.printed} ({logs[0].format.title}, {series.metric.name})"
            yield _Statement(throughput, origin, with_stalls)
