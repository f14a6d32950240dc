"""What the logs of one run print, made the job's, or why the run can't be counted. No pandas: workers import it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.errors import LogError
from dlperf_study.ingest.contradictions import contradictions, unstated_data, untrained
from dlperf_study.ingest.identity import LogRun, Stated
from dlperf_study.ingest.rank_completeness import lost_ranks, ranks_seen, silent_ranks
from dlperf_study.ingest.rates import Rates, rates_of, why_not_counted
from dlperf_study.logs.blocks import textless
from dlperf_study.logs.engine import read
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.rank_merge import job_series
from dlperf_study.logs.sources import Source

#: Fewer lines of two logs may print the same numbers by chance.
FEWEST_COMPARED = 3


@dataclass(frozen=True)
class RunToRead:
    """One run to read. ``bytes``: how large its logs are, as they lie there."""

    stated: Stated
    run: LogRun
    sources: tuple[Source, ...]
    bytes: int


@dataclass(frozen=True)
class PrintedRun:
    """One run. ``refusal``: why it can't be counted, empty where it can; ``rates`` may be missing then.

    ``format``: that of its logs, empty where none could be read. ``prints``: of each log that prints enough what
    tells it from every other one, and its name.
    """

    repetition: int
    logs: tuple[str, ...]
    format: str
    rates: Rates | None
    ranks_seen: int
    refusal: str
    diagnostics: tuple[Diagnostic, ...] = ()
    prints: Mapping[bytes, str] = field(default_factory=dict)


def read_printed(task: RunToRead) -> PrintedRun:
    """Read the logs of a run; whatever is wrong with them is in what it returns."""
    readings, unreadable = _read(task)
    if not readings:
        return PrintedRun(task.run.repetition, task.run.logs, "", None, 0, "; ".join(unreadable))
    rates, diagnostics, contradicted = _job_rates(task, readings)
    return PrintedRun(
        repetition=task.run.repetition,
        logs=task.run.logs,
        format=readings[0].format.name,
        rates=rates,
        ranks_seen=ranks_seen(readings),
        refusal="; ".join([*_refusals(task, readings, unreadable), *contradicted]),
        diagnostics=(*_diagnostics(task, readings, unreadable), *diagnostics),
        prints={
            _print(one): str(one.source) for one in readings if len(one.series(one.rate_metric)) >= FEWEST_COMPARED
        },
    )


def _print(reading: Reading) -> bytes:
    """Return a digest of the numbers as they are printed: made the job's, a copy elsewhere would have others."""
    rows = reading.series(reading.rate_metric)
    columns = (rows.epoch, rows.step, *(rows.values[name] for name in sorted(rows.values)))
    return hashlib.sha256(b"".join(column.tobytes() for column in columns)).digest()


def _read(task: RunToRead) -> tuple[list[Reading], list[str]]:
    readings, unreadable = [], []
    for source in task.sources:
        try:
            readings.append(read(source, task.stated.extras.format))
        except LogError as error:
            empty = textless(source)
            unreadable.append(f"{source}: {empty}" if empty else str(error))
    return readings, unreadable


def _refusals(task: RunToRead, readings: Sequence[Reading], unreadable: Sequence[str]) -> Iterator[str]:
    """Yield what keeps a run from being counted, whatever its rates are."""
    for reading in readings:
        yield from (one.message for one in reading.diagnostics if one.severity is Severity.ERROR)
    yield from silent_ranks(unreadable, len(readings), task.stated.jobs_devices)
    yield from lost_ranks(readings)
    yield from untrained(readings)
    yield from contradictions(readings, task.stated)


def _diagnostics(task: RunToRead, readings: Sequence[Reading], unreadable: Sequence[str]) -> Iterator[Diagnostic]:
    for reading in readings:
        yield from (one for one in reading.diagnostics if one.severity is not Severity.ERROR)
    yield from (Diagnostic("logs", said) for said in unreadable)
    yield from unstated_data(readings, task.stated.parameters)


def _job_rates(task: RunToRead, readings: Sequence[Reading]) -> tuple[Rates | None, tuple[Diagnostic, ...], list[str]]:
    """Return the rates of the job if its logs hold any, the diagnostics about them, and why they can't be counted."""
    diagnostics: tuple[Diagnostic, ...] = ()
    try:
        series = job_series(readings, task.stated.jobs_devices)
        diagnostics = series.diagnostics
        rates = rates_of(readings, series, task.stated.extras)
    except LogError as error:
        return None, diagnostics, [str(error)]
    return rates, diagnostics, list(why_not_counted(series, rates))
