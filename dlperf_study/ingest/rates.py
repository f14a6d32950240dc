"""The rates of a job that its logs print: in samples/s, and which of them count. No pandas: workers import it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.analysis.rate_series import (
    RateWindow,
    SteadyPart,
    cumulative_steps,
    fixed_window,
    steady_part,
    two_levels,
)
from dlperf_study.arrays import Floats, Integers, Mask
from dlperf_study.errors import LogError
from dlperf_study.ingest.identity import Extras
from dlperf_study.logs.completeness import is_much
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.rank_merge import JobSeries
from dlperf_study.logs.records import joined
from dlperf_study.logs.sources import Source
from dlperf_study.logs.step_index import places_of
from dlperf_study.wording import counted

#: Of which steps DLPerf took the rate: the first, and that behind the last; its extractors count iterations from 1.
FIXED_WINDOW, FIXED_WINDOW_PLSC = (20, 120), (50, 150)


@dataclass(frozen=True)
class Rates:
    """The job's rate in samples/s at each printed step, counted from the start; ``loss`` is NaN where none is printed.

    ``rule``: how it was had. ``steady``: which of them count. ``fixed``: those that DLPerf took, from the first of
    ``steps_taken`` to before the second.
    """

    rule: str
    step: Integers
    rate: Floats
    loss: Floats
    steady: SteadyPart
    fixed: RateWindow
    steps_taken: tuple[int, int]


def rates_of(readings: Sequence[Reading], series: JobSeries, extras: Extras) -> Rates:
    """Return the usable part of a series; raises LogError when it is none of samples, or holds no rate above 0."""
    usable = _usable(series)
    if not usable.any():
        raise LogError(f"{readings[0].source}: no {series.metric} is a number above 0")
    rate = series.rate[usable] / _per_sample(series.unit, extras.tokens_per_sample, readings[0].source)
    step = cumulative_steps(series.step[usable])
    taken = FIXED_WINDOW_PLSC if readings[0].format.name.startswith("plsc") else FIXED_WINDOW
    return Rates(
        rule=series.rule + _driven(extras.devices_per_process),
        step=step,
        rate=rate,
        loss=_losses(readings, series)[usable],
        steady=_last(rate) if series.metric.startswith("running") else steady_part(step, rate),
        fixed=fixed_window(step, rate, *taken),
        steps_taken=taken,
    )


def why_not_counted(series: JobSeries, rates: Rates) -> Iterator[str]:
    """Yield why the rates of a series, although there are some, are none of the run."""
    yield from _without_rate(series)
    yield from _levels(rates)


def windows_of(rates: Rates) -> Iterator[tuple[str, Mask]]:
    """Yield the windows of a run by the names of the table of steps, and which lines are in each."""
    kept = rates.steady.window.kept
    before = np.arange(kept.size) < rates.steady.startup
    yield "warmup", before
    yield "training", kept
    yield "left_out", ~(before | kept)


def _usable(series: JobSeries) -> Mask:
    return np.isfinite(series.rate) & (series.rate > 0)


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


def _driven(devices: int | None) -> str:
    """Return what a rank is where it is no single device."""
    return f"; a rank drives {devices} devices" if devices and devices > 1 else ""


def _last(rate: Floats) -> SteadyPart:
    """Return the last line alone: a running mean holds all before it."""
    kept = np.zeros(rate.size, dtype=bool)
    kept[-1] = True
    last = float(rate[-1])
    reason = "a running mean: the last line holds all before it, the start-up of the window too"
    return SteadyPart(RateWindow(kept, last, last, (reason,)), startup=0, stalls=(), settled=None)


def _losses(readings: Sequence[Reading], series: JobSeries) -> Floats:
    """Return the loss at each step of a series, the mean over ranks; NaN where none is printed."""
    rows = joined([reading.records for reading in readings]).series("loss")
    if not len(rows):
        return np.full(series.rate.size, np.nan)
    places = places_of(rows.epoch, rows.step)
    means = places.means(rows.values["loss"])
    wide = max(int(rows.step.max()), int(series.step.max())) + 2
    known, wanted = _keys(places.epoch, places.step, wide), _keys(series.epoch, series.step, wide)
    if np.array_equal(known, wanted):
        return means
    index = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    losses: Floats = np.where(known[index] == wanted, means[index], np.nan)
    return losses


def _keys(epoch: Integers, step: Integers, wide: int) -> Integers:
    keys: Integers = (epoch + 1) * wide + step + 1
    return keys


def _without_rate(series: JobSeries) -> Iterator[str]:
    """Yield that so many steps have no rate above 0 that the others may be another sample than all."""
    count = int(np.count_nonzero(~_usable(series)))
    if is_much(count, series.rate.size):
        steps = counted(series.rate.size, "step")
        yield f"at {count} of {steps} {series.metric} makes no rate above 0: the others may be unlike the whole"


def _levels(rates: Rates) -> Iterator[str]:
    levels = two_levels(rates.steady, rates.rate)
    if levels:
        said = f"{levels[0]:.6g} and from step {rates.step[rates.steady.startup]} on {levels[1]:.6g} samples/s"
        yield f"two levels, so no one rate: {said}"
