"""Reads the logs of several runs at a time, merges what they print into each job's throughputs, and compares the runs.

Runs are yielded in order; the memory used does not grow with their number. No pandas: worker processes import this.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from dlperf_study.core.errors import Diagnostic, DlperfStudyError, LogError, Severity
from dlperf_study.core.process_pool import WHY_BROKEN, mapped_in_processes, processes_for
from dlperf_study.core.reading_limits import ReadingLimits
from dlperf_study.core.wording import counted
from dlperf_study.dataset.ingestion.job_throughputs import (
    Throughputs,
    mean_since_start,
    throughput_problems,
    usable_throughputs,
)
from dlperf_study.dataset.ingestion.self_comparison import self_contradictions
from dlperf_study.logs.blocks import LogSource, no_text_reason
from dlperf_study.logs.json_lines import is_tracker_file
from dlperf_study.logs.log_checks import contradictions, unstated_data, untrained
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.metadata import LogMetadata, LogRun
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.logs.rank_checks import ALLOWED_STEPS_APART, ranks_seen, silent_ranks, truncated_ranks
from dlperf_study.logs.rank_merge import job_series

#: With fewer bytes of logs, starting a pool of processes takes longer than reading.
WORTH_A_POOL_BYTES = 64 << 20
#: By how much logs are compressed at most.
_MAX_COMPRESSION = 20
#: With fewer lines, two logs may print the same numbers by chance.
_FEWEST_LINES = 3


@dataclass(frozen=True)
class RunToRead:
    """One run to read; ``bytes``: the stored size of its logs."""

    metadata: LogMetadata
    run: LogRun
    sources: tuple[LogSource, ...]
    bytes: int

    @property
    def unpacked_bytes(self) -> int:
        """How many bytes its logs may have when they are no longer compressed."""
        is_compressed = any(source.member or source.name.endswith(".gz") for source in self.sources)
        return self.bytes * (_MAX_COMPRESSION if is_compressed else 1)


@dataclass(frozen=True)
class PrintedRun:
    """One run; ``refusal``: why it can't be counted, else empty.

    ``format``: that of its logs, empty if none could be read. ``cache_keys``: a digest of the numbers of each log
    that prints enough of them, with the name of the log.
    """

    repetition: int
    logs: tuple[str, ...]
    format: str
    throughputs: Throughputs | None
    ranks_seen: int
    refusal: str
    diagnostics: tuple[Diagnostic, ...] = ()
    cache_keys: Mapping[bytes, str] = field(default_factory=dict)

    def refused(self, reason: str) -> "PrintedRun":
        """Return the run with one more reason for refusal."""
        return replace(self, refusal="; ".join(filter(None, [self.refusal, reason])))


def read_runs(tasks: Sequence[RunToRead]) -> Iterator[tuple[RunToRead, PrintedRun]]:
    """Yield every run in order; raises LogError if a reader ends."""
    processes = processes_for(len(tasks))
    if processes < 2 or sum(task.bytes for task in tasks) < WORTH_A_POOL_BYTES:
        yield from zip(tasks, map(read_printed_run, tasks), strict=True)
        return
    try:
        yield from zip(tasks, mapped_in_processes(read_printed_run, tasks, processes), strict=True)
    except BrokenProcessPool as error:
        raise LogError(f"a process that reads logs ended early; {WHY_BROKEN}") from error


def read_printed_run(task: RunToRead) -> PrintedRun:
    """Read the logs of a run; problems are in the result."""
    try:
        with ReadingLimits(task.unpacked_bytes, LogError):
            return _read_printed_run(task)
    except Exception as error:
        # One log that nobody expected takes no other down.
        cause = str(error) if isinstance(error, DlperfStudyError) else f"{type(error).__name__}: {error}"
        return PrintedRun(task.run.repetition, task.run.logs, "", None, 0, f"can't be read: {cause}")


def _read_printed_run(task: RunToRead) -> PrintedRun:
    logs, unreadable = [], []
    for source in task.sources:
        try:
            logs.append(read_log(source, task.metadata.extras.format, task.run.part))
        except LogError as error:
            message = str(error)
            if not is_tracker_file(source.name) and (reason := no_text_reason(source)):
                message = f"{source}: {reason}"
            unreadable.append(message)
    if not logs:
        return PrintedRun(task.run.repetition, task.run.logs, "", None, 0, "; ".join(unreadable))
    refusals, diagnostics = _check_logs(task, logs, unreadable)
    throughputs, throughput_diagnostics, throughput_refusals = _job_throughputs(task, logs)
    if throughputs and not refusals:
        # With wrong metadata, numbers contradict each other that don't in the log.
        for contradiction in self_contradictions(logs, task.metadata, throughputs):
            if contradiction.severity is Severity.ERROR:
                refusals.append(contradiction.message)
            else:
                diagnostics.append(contradiction)
    return PrintedRun(
        repetition=task.run.repetition,
        logs=task.run.logs,
        format=logs[0].format.name,
        throughputs=throughputs,
        ranks_seen=ranks_seen(logs),
        refusal="; ".join([*refusals, *throughput_refusals]),
        diagnostics=(*diagnostics, *throughput_diagnostics),
        cache_keys=_cache_keys(logs),
    )


def _job_throughputs(
    task: RunToRead, logs: Sequence[ParsedLog]
) -> tuple[Throughputs | None, tuple[Diagnostic, ...], list[str]]:
    """Return the job's throughputs, their diagnostics, and a reason for refusal."""
    diagnostics: tuple[Diagnostic, ...] = ()
    try:
        series = job_series(logs, task.metadata.job_size)
        diagnostics = series.diagnostics
        throughputs = usable_throughputs(logs, series, task.metadata.extras, task.metadata.global_batch)
    except LogError as error:
        return None, diagnostics, [str(error)]
    if reason := mean_since_start(series, throughputs):
        diagnostics += (Diagnostic("logs", reason),)
    return throughputs, diagnostics, list(throughput_problems(series, throughputs))


def _check_logs(
    task: RunToRead, logs: Sequence[ParsedLog], unreadable: Sequence[str]
) -> tuple[list[str], list[Diagnostic]]:
    """Return a reason for refusal, and the diagnostics about the logs."""
    printed = list(chain.from_iterable(log.diagnostics for log in logs))
    refusals = [diagnostic.message for diagnostic in printed if diagnostic.severity is Severity.ERROR]
    diagnostics = [diagnostic for diagnostic in printed if diagnostic.severity is not Severity.ERROR]
    refusals += silent_ranks(unreadable, len(logs), task.metadata.job_size)
    refusals += [*truncated_ranks(logs), *untrained(logs), *contradictions(logs, task.metadata)]
    diagnostics += [Diagnostic("logs", reason) for reason in unreadable]
    diagnostics += unstated_data(logs, task.metadata.parameters)
    return refusals, diagnostics


def _cache_keys(logs: Sequence[ParsedLog]) -> dict[bytes, str]:
    """Return a digest of each log's printed numbers, before merging."""
    cache_keys = {}
    for log in logs:
        rows = log.series(log.throughput_metric)
        if len(rows) >= _FEWEST_LINES:
            digest = hashlib.sha256()
            for column in (rows.epoch, rows.step, *(rows.values[name] for name in sorted(rows.values))):
                digest.update(np.ascontiguousarray(column).data)
            cache_keys[digest.digest()] = str(log.source)
    return cache_keys


def check_runs(runs: Sequence[PrintedRun], steps_planned: int | None) -> list[PrintedRun]:
    """Return one configuration's runs, refused if they do not fit.

    A run is refused if it ends before or after the requested steps. If these are not stated, it is refused if it ends
    before the last of the other runs that are not refused.
    """
    last_steps = [int(run.throughputs.step[-1]) for run in runs if run.throughputs and not run.refusal]
    expected = steps_planned or max(last_steps, default=0)
    why_expected = f"{expected} were requested" if steps_planned else f"another repetition has {expected}"
    [(usual_logs, _)] = Counter(len(run.logs) for run in runs).most_common(1) or [(0, 0)]
    formats = {run.format: run for run in runs if run.format}
    examples = ", ".join(f"{name} ({run.logs[0]})" for name, run in sorted(formats.items()))
    mixed_formats = f"this configuration has logs in several formats, {examples}; state which format to read"
    checked = []
    for run in runs:
        if len(formats) > 1:
            run = run.refused(f"mixed folder: {mixed_formats}")
        run = _check_last_step(run, expected, why_expected)
        if len(runs) > 1 and len(run.logs) != usual_logs:
            message = (
                f"has {counted(len(run.logs), 'log')}, but other repetitions have {usual_logs}; check for a missing log"
            )
            run = replace(run, diagnostics=(*run.diagnostics, Diagnostic("logs", message)))
        checked.append(run)
    return checked


def _check_last_step(run: PrintedRun, expected: int, why_expected: str) -> PrintedRun:
    if not run.throughputs or run.refusal:
        return run
    steps, last_step = run.throughputs.step, int(run.throughputs.step[-1])
    usual_distance = float(np.median(np.diff(steps))) if steps.size > 1 else 1.0
    if abs(last_step - expected) <= ALLOWED_STEPS_APART * usual_distance:
        return run
    if last_step < expected:
        return run.refused(f"truncated: ends at step {last_step}, but {why_expected}")
    return run.refused(f"ends at step {last_step}, but {why_expected}")
