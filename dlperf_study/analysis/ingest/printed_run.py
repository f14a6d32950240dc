"""What the logs of one run print, made the job's, or why the run can't be counted. No pandas: workers import it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dlperf_study.analysis.ingest.contradictions import contradictions
from dlperf_study.analysis.ingest.identity import LogRun, Stated
from dlperf_study.analysis.ingest.ranks import lost_ranks, ranks_seen, silent_ranks
from dlperf_study.analysis.steady_series import (
    Stalls,
    Steady,
    Window,
    fixed_window,
    positions_of,
    steady_part,
    two_levels,
)
from dlperf_study.errors import LogError
from dlperf_study.logs.complaint import Complaint, Severity
from dlperf_study.logs.engine import read
from dlperf_study.logs.merge import Devices, JobSeries, job_series
from dlperf_study.logs.reading import Reading, places_of
from dlperf_study.logs.records import joined
from dlperf_study.logs.sources import Source

#: Of which steps DLPerf took the rate: first and last; its extractors count iterations from 1.
FIXED_WINDOW, FIXED_WINDOW_PLSC = (20, 120), (50, 150)
_NO_STALLS: tuple[Stalls, ...] = ()

Real = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """One run to read. ``bytes``: how large its logs are, as they lie there."""

    stated: Stated
    run: LogRun
    sources: tuple[Source, ...]
    bytes: int

    @property
    def devices(self) -> Devices:
        """What the identity says of the job."""
        sizes = [self.stated.parameters[name] for name in ("nodes", "devices_per_node", "batch_per_device")]
        return Devices(*(int(size) for size in sizes))


@dataclass(frozen=True)
class Rates:
    """The job's rate in samples/s at each printed step, counted from the start; ``loss`` is NaN where none is printed.

    ``rule``: how it was had. ``steady``: which of them count. ``fixed``: those that DLPerf took, ``steps_taken`` of it.
    """

    rule: str
    step: Whole
    rate: Real
    loss: Real
    steady: Steady
    fixed: Window
    steps_taken: tuple[int, int]


@dataclass(frozen=True)
class PrintedRun:
    """One run. ``refusal``: why it can't be counted, empty where it can; ``rates`` may be missing then.

    ``format``: that of its logs, empty where none could be read.
    """

    repetition: int
    logs: tuple[str, ...]
    format: str
    rates: Rates | None
    ranks_seen: int
    refusal: str
    complaints: tuple[Complaint, ...] = ()


def read_printed(task: Task) -> PrintedRun:
    """Read the logs of a run; whatever is wrong with them is in what it returns."""
    readings, unreadable = _read(task)
    if not readings:
        return PrintedRun(task.run.repetition, task.run.logs, "", None, 0, "; ".join(unreadable))
    found = [complaint for reading in readings for complaint in reading.complaints]
    refusals = [complaint.message for complaint in found if complaint.severity is Severity.ERROR]
    refusals += [*silent_ranks(unreadable, len(readings), task.devices), *lost_ranks(readings)]
    refusals += contradictions(readings, task.stated.parameters)
    doubts = [
        *(one for one in found if one.severity is not Severity.ERROR),
        *(Complaint("logs", u) for u in unreadable),
    ]
    rates = None
    try:
        series = job_series(readings, task.devices)
        doubts += series.complaints
        rates = _rates(readings, series, task.stated.extras.tokens_per_sample)
        refusals += _levels(rates)
    except LogError as error:
        refusals.append(str(error))
    return PrintedRun(
        repetition=task.run.repetition,
        logs=task.run.logs,
        format=readings[0].format.name,
        rates=rates,
        ranks_seen=ranks_seen(readings),
        refusal="; ".join(refusals),
        complaints=tuple(doubts),
    )


def _read(task: Task) -> tuple[list[Reading], list[str]]:
    readings, unreadable = [], []
    for source in task.sources:
        try:
            readings.append(read(source, task.stated.extras.format))
        except LogError as error:
            unreadable.append(str(error))
    return readings, unreadable


def _rates(readings: Sequence[Reading], series: JobSeries, tokens_per_sample: int | None) -> Rates:
    """Return the usable part of a series; raises LogError when it is none of samples, or holds no rate above 0."""
    usable = np.isfinite(series.rate) & (series.rate > 0)
    if not usable.any():
        raise LogError(f"{readings[0].source}: no {series.metric} is a number above 0")
    rate = series.rate[usable] / _per_sample(series.unit, tokens_per_sample, readings[0].source)
    step = positions_of(series.step[usable])
    taken = FIXED_WINDOW_PLSC if readings[0].format.name.startswith("plsc") else FIXED_WINDOW
    return Rates(
        rule=series.rule,
        step=step,
        rate=rate,
        loss=_losses(readings, series)[usable],
        steady=_last(rate) if series.metric.startswith("running") else steady_part(step, rate),
        fixed=fixed_window(step, rate, *taken),
        steps_taken=taken,
    )


def _levels(rates: Rates) -> Iterator[str]:
    levels = two_levels(rates.steady, rates.rate)
    if levels:
        said = f"{levels[0]:.6g} and from step {rates.step[rates.steady.startup]} on {levels[1]:.6g} samples/s"
        yield f"two levels, so no one rate: {said}"


def _per_sample(unit: str, tokens_per_sample: int | None, source: Source) -> int:
    """Return by what a printed rate is divided to be one of samples."""
    if unit == "samples/s":
        return 1
    if tokens_per_sample and unit in ("tokens/s", ""):
        return tokens_per_sample
    if not unit:
        said = "prints a rate and not what it counts; state tokens_per_sample, 1 where it counts samples"
        raise LogError(f"{source}: {said}")
    raise LogError(f"{source}: prints {unit} and not samples/s; state tokens_per_sample if that is known")


def _last(rate: Real) -> Steady:
    """Return the last line alone: a running mean holds all before it."""
    kept = np.zeros(rate.size, dtype=bool)
    kept[-1] = True
    last = float(rate[-1])
    reason = "a running mean: the last line holds all before it, the start-up of the window too"
    return Steady(Window(kept, last, last, (reason,)), 0, _NO_STALLS, None)


def _losses(readings: Sequence[Reading], series: JobSeries) -> Real:
    """Return the loss at each step of a series, the mean over ranks; NaN where none is printed."""
    rows = joined([reading.records for reading in readings]).series("loss")
    if not len(rows):
        return np.full(series.rate.size, np.nan)
    places = places_of(rows.epoch, rows.step)
    means: Real = np.bincount(places.group, weights=rows.values["loss"]) / places.counts
    wide = max(int(rows.step.max()), int(series.step.max())) + 2
    known, wanted = _keys(places.epoch, places.step, wide), _keys(series.epoch, series.step, wide)
    if np.array_equal(known, wanted):
        return means
    index = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    losses: Real = np.where(known[index] == wanted, means[index], np.nan)
    return losses


def _keys(epoch: Whole, step: Whole, wide: int) -> Whole:
    keys: Whole = (epoch + 1) * wide + step + 1
    return keys


def windows_of(rates: Rates) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the windows of a run by the names of the table of steps, and which lines are in each."""
    kept = rates.steady.window.kept
    before = np.arange(kept.size) < rates.steady.startup
    yield "warmup", before
    yield "training", kept
    yield "left_out", ~(before | kept)
