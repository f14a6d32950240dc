"""Metrics of third-party logs, and the throughput by the times of lines.

That throughput is samples / seconds between the times at which lines were printed, stalls included. It counts only if
it fits: between ordinary lines the times must give the printed throughput.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlperf_study.core.arrays import Floats, Integers, median
from dlperf_study.metrics import metric
from dlperf_study.metrics.comparison import denominator_metric
from dlperf_study.metrics.steady_state import MINIMUM_STEPS
from dlperf_study.metrics.throughput_series import SteadyPart

#: Lines may have no date: their time starts over at midnight.
SECONDS_PER_DAY = 86400.0
#: The seconds between two lines must be this many times the resolution of their times.
RESOLUTIONS = 100
#: By how much times and printed throughputs of ordinary lines may differ, and over how many pieces that is averaged.
MISFIT, PIECES = 0.1, 20


@dataclass(frozen=True)
class WallThroughput:
    """Samples/s by the times of lines, or ``obstacle``.

    ``misfit``: the obstacle if times and printed throughputs contradict each other. ``ordinary``: samples/s between
    ordinary lines.
    """

    throughput: float
    obstacle: str = ""
    misfit: str = ""
    ordinary: float = np.nan


def wall_throughput(
    steps: Integers, times: Floats, steady: SteadyPart, global_batch: int, epochs: Integers | None = None
) -> WallThroughput:
    """Return the throughput after the start-up by the times of lines.

    Args:
        steps: the step of each line, increasing; shape (lines,)
        epochs: the epoch of each line, if steps start over with it: not all of them are known from one to the next
        times: in seconds, of each line, NaN if it has none; shape (lines,)
        steady: the steady part of the throughputs of these lines
        global_batch: samples per step
    """
    lines = np.flatnonzero(np.isfinite(times) & (np.arange(times.size) >= steady.startup))
    if lines.size < MINIMUM_STEPS or not np.isfinite(steady.window.wall_throughput):
        if not np.isfinite(times).any():
            return WallThroughput(np.nan, "its lines have no times")
        return WallThroughput(np.nan, f"fewer than {MINIMUM_STEPS} of its lines have a time after the start-up")
    distances, seconds = np.diff(steps[lines]), _between(times[lines])
    both_usual = steady.window.kept[lines[:-1]] & steady.window.kept[lines[1:]]
    if epochs is not None:
        both_usual &= epochs[lines[:-1]] == epochs[lines[1:]]
    resolution = _resolution(seconds)
    if (seconds_of_run := min(seconds.sum(), seconds[both_usual].sum())) < RESOLUTIONS * resolution:
        between = f"{max(seconds_of_run, 0):.3g} s between ordinary lines"
        needed = f"a resolution of {resolution:g} s needs {RESOLUTIONS * resolution:g} s"
        return WallThroughput(np.nan, f"the times of its lines are too coarse: {between}, where {needed}")
    if (seconds < 0).any():
        return _misfitting("times go backwards")
    usual = global_batch * _usual_throughput(distances[both_usual], seconds[both_usual])
    if abs(usual / steady.window.wall_throughput - 1) > MISFIT:
        printed = f"{steady.window.wall_throughput:.6g} samples/s are printed"
        return _misfitting(f"the times between ordinary lines give {usual:.6g} samples/s, but {printed}", usual)
    return WallThroughput(float(global_batch * distances.sum() / seconds.sum()))


def _misfitting(misfit: str, ordinary: float = np.nan) -> WallThroughput:
    return WallThroughput(np.nan, misfit, misfit, ordinary)


def throughput_between(steps: Integers, times: Floats, first_step: int, last_step: int, global_batch: int) -> float:
    """Return samples/s by the times of two lines; NaN if unknown.

    The rule of DLPerf's extract_paddle_logs_time.py, for the first and the last step of its window. ``steps``,
    ``times``: as of ``wall_throughput``.
    """
    ends = []
    for step in (first_step, last_step):
        ends.append(np.flatnonzero((steps == step) & np.isfinite(times)))
    if not all(lines.size for lines in ends):
        return np.nan
    [seconds] = _between(times[[ends[0][0], ends[1][0]]])
    if seconds < RESOLUTIONS * _resolution(times[np.isfinite(times)]):
        return np.nan
    return float(global_batch * (last_step - first_step) / seconds)


def _resolution(seconds: Floats) -> float:
    """Return the resolution of times in seconds: 1 without fractions."""
    if (np.round(seconds) == seconds).all():
        return 1.0
    return 0.001


def _between(times: Floats) -> Floats:
    """Return the seconds between lines, also across midnight."""
    seconds = np.diff(times)
    if times.max() < SECONDS_PER_DAY:
        seconds[seconds < -SECONDS_PER_DAY / 2] += SECONDS_PER_DAY
    return seconds


def _usual_throughput(distances: Integers, seconds: Floats) -> float:
    """Return steps per second, the median over pieces of a series."""
    starts = np.unique(np.linspace(0, seconds.size, PIECES, endpoint=False).astype(np.int64))
    piece_seconds = np.add.reduceat(seconds, starts)
    with np.errstate(divide="ignore"):
        return median(np.add.reduceat(distances, starts) / piece_seconds)


NO_EXTRACTOR = "DLPerf has no extractor for such logs, or one with a rule of its own"
NO_TIMES_OF_WINDOW = "the lines of its first and last step have no times, or too coarse ones"
NO_LINE = "no line of the log with samples/s is in DLPerf's window"


def no_fixed_window(gap: metric.Gap) -> str:
    """Return why a configuration has no number of DLPerf's window."""
    if gap.runs["fixed_window"].notna().any():
        return NO_LINE
    return NO_EXTRACTOR


def no_fixed_window_of_run(row: Any) -> str:
    """Return why a run has no number of DLPerf's window."""
    if isinstance(row.fixed_window, str):
        return NO_LINE
    return NO_EXTRACTOR


def no_wall_throughput_of_run(row: Any) -> str:
    """Return why a run has no throughput by times; else empty."""
    if isinstance(row.wall_obstacle, str):
        return row.wall_obstacle
    return ""


METRICS = (
    metric.text("log_format", "Format", "log format", metric.R),
    denominator_metric("baseline", "token_throughput"),
    denominator_metric("reference", "token_throughput"),
    metric.text("printed_throughput", "Printed as", "unit and scope of the printed number", metric.R),
    metric.text("merge_rule", "Merged by", "rule that merges ranks into the job", metric.R),
    metric.whole_number("printed_lines", "Printed", "printed throughputs of the whole job", metric.R, unit="lines"),
    metric.whole_number(
        "steady_lines",
        "Steady",
        "printed throughputs that count",
        metric.R,
        unit="lines",
        explained_by="steady_window",
    ),
    metric.text("steady_window", "Left out", "excluded throughputs, with the reason", metric.R),
    metric.text(
        "behaviour",
        "Behaviour",
        "flat; warm-up: the last throughput level is the fastest; slow-down: it is not; no steady state: "
        "too short or unsteady",
        metric.R,
        explained_by="throughput_levels",
    ),
    metric.text(
        "throughput_levels",
        "Throughput levels",
        "throughput and steps of each level of the log",
        metric.R,
    ),
    metric.Metric(
        "wall_throughput",
        "Throughput by the clock",
        "samples / seconds by the log's timestamps after start-up, stalls included",
        metric.R,
        unit="samples/s",
        missing=(metric.only_in_tokens,),
        missing_of_run=no_wall_throughput_of_run,
    ),
    metric.text(
        "wall_obstacle",
        "No throughput by the clock because",
        "why there is no throughput by timestamps",
        metric.R,
    ),
    metric.text("fixed_window", "Fixed window", "steps that DLPerf selects from such logs", metric.R),
    metric.Metric(
        "fixed_window_throughput",
        "Throughput, fixed window",
        "samples / seconds of the steps that DLPerf selects",
        unit="samples/s",
        summary=metric.Summary.GEOMETRIC,
        missing=(metric.only_in_tokens, no_fixed_window),
        missing_of_run=no_fixed_window_of_run,
    ),
    metric.Metric(
        "fixed_window_clock_throughput",
        "Throughput by the clock, fixed window",
        "samples / seconds by timestamps of the steps that DLPerf selects",
        unit="samples/s",
        summary=metric.Summary.GEOMETRIC,
        missing=(metric.only_in_tokens, no_fixed_window, NO_TIMES_OF_WINDOW),
        missing_of_run=NO_TIMES_OF_WINDOW,
    ),
    metric.Metric(
        "fixed_window_mean_step_throughput",
        "Mean per-step throughput, fixed window",
        "arithmetic mean of the throughputs printed at the steps that DLPerf selects",
        unit="samples/s",
        summary=metric.Summary.GEOMETRIC,
        missing=(metric.only_in_tokens, no_fixed_window),
        missing_of_run=no_fixed_window_of_run,
    ),
)
