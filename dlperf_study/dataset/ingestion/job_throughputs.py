"""The throughputs of a job in samples/s, or in tokens/s, from its logs, and which of them count.

No pandas: worker processes import this.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlperf_study.core.arrays import Floats, Integers, Mask, constant, elements
from dlperf_study.core.errors import LogError
from dlperf_study.core.wording import counted
from dlperf_study.logs.blocks import LogSource
from dlperf_study.logs.log_checks import exceeds_chance
from dlperf_study.logs.metadata import Extras
from dlperf_study.logs.parsed_log import ParsedLog, cumulative_steps, index_steps
from dlperf_study.logs.printed import SAMPLE_SECONDS
from dlperf_study.logs.rank_merge import JobSeries
from dlperf_study.logs.records import merge_records
from dlperf_study.metrics import steady_state, throughput_series
from dlperf_study.metrics.ingested import WallThroughput, throughput_between, wall_throughput

_LAST_LINE = "a running mean: the last line covers all before it, including the start-up"
_EPOCH_LINES = "a running mean of each epoch: its last line counts, of"
#: An epoch is complete from this part of the longest on; where only the first is, a shorter one tells its throughput
#: better.
_COMPLETE_EPOCH, _SHORTEST_EPOCH, _SHOWN_EPOCHS = 0.95, 0.25, 20
_SAMPLES, _TOKENS = "samples/s", "tokens/s"
#: From fewer means no throughput of their later half is worked out.
_FEWEST_MEANS = 4
#: The relative difference of that throughput up to which a mean is a steady throughput.
_STEADY_MEAN = 0.02
#: Whether a running mean is steady can't be told, however many lines there are.
_ONE_LINE = steady_state.Steadiness(steady_state.Answer.INCONCLUSIVE, float("nan"), None)


@dataclass(frozen=True)
class Throughputs:
    """The job's throughput at each printed step; ``loss`` may be NaN.

    ``unit``: of the throughput, ``samples/s``, or ``tokens/s`` where the tokens of a sample are not known. ``tokens``:
    how many tokens a sample, or a token, has; NaN if that is not known. ``printed``: what the program prints; ``rule``:
    how the throughput was computed from it. ``steady``: the lines that count. ``wall``: the throughput by the times of
    the lines, or why there is none; None where only tokens are counted. ``fixed``: the lines that DLPerf took, from the
    first of ``fixed_steps`` to before the second; None where it read no such logs. ``fixed_clock_throughput``: by the
    times of the first and the last of these; NaN where that is not known.
    """

    unit: str
    tokens: float
    printed: str
    rule: str
    step: Integers
    throughput: Floats
    loss: Floats
    steady: throughput_series.SteadyPart
    wall: WallThroughput | None
    fixed: throughput_series.ThroughputWindow | None
    fixed_steps: tuple[int, int] | None
    fixed_clock_throughput: float

    @property
    def counts_tokens(self) -> bool:
        """Whether it is not known how many samples these tokens are."""
        return self.unit == _TOKENS


def usable_throughputs(logs: Sequence[ParsedLog], series: JobSeries, extras: Extras, global_batch: int) -> Throughputs:
    """Return the usable part of a series; raises LogError without throughputs."""
    usable = _is_usable(series)
    if not usable.any():
        raise LogError(f"{logs[0].source}: no {series.metric.name} is a number above 0")
    samples, unit = samples_per_unit(series.unit, extras, logs[0].source)
    throughput = elements(series.throughput, usable)
    throughput = throughput if samples == 1 else throughput * samples
    step = elements(series.step, usable)
    step = np.cumsum(step) if series.metric.restarts_each_epoch and (step >= 0).all() else cumulative_steps(step)
    devices = extras.devices_per_process or 1
    steady = _part_that_counts(series, usable, step, throughput)
    fixed_steps = logs[0].format.dlperf_steps
    wall, fixed_clock_throughput = None, np.nan
    # The batch is in samples.
    if unit == _SAMPLES:
        times = elements(series.time_seconds, usable)
        # If steps start over with each epoch, it is not known how many are between two of them.
        epochs = None
        if not series.metric.restarts_each_epoch and (np.diff(series.step) <= 0).any():
            epochs = elements(series.epoch, usable)
        samples_of_step = 1 if series.metric.name == SAMPLE_SECONDS.name else global_batch
        wall = wall_throughput(step, times, steady, samples_of_step, epochs)
        if fixed_steps:
            fixed_clock_throughput = throughput_between(step, times, fixed_steps[0], fixed_steps[1] - 1, global_batch)
    return Throughputs(
        unit=unit,
        tokens=1 if unit == _TOKENS else extras.tokens_per_sample or float("nan"),
        printed=series.metric.printed,
        rule=series.rule + (f"; a rank drives {devices} devices" if devices > 1 else ""),
        step=step,
        throughput=throughput,
        loss=elements(_losses(logs, series), usable),
        steady=steady,
        wall=wall,
        fixed=throughput_series.fixed_window(step, throughput, *fixed_steps) if fixed_steps else None,
        fixed_steps=fixed_steps,
        fixed_clock_throughput=fixed_clock_throughput,
    )


def _part_that_counts(
    series: JobSeries, usable: Mask, step: Integers, throughput: Floats
) -> throughput_series.SteadyPart:
    """Return which lines count: steady ones, or one running mean."""
    if not series.metric.cumulative:
        return throughput_series.steady_part(step, throughput)
    if series.metric.restarts_each_epoch:
        return _complete_epochs(throughput, elements(series.step, usable))
    last = np.arange(throughput.size) == throughput.size - 1
    return _of_lines(throughput, constant(1.0, throughput.size), last, _LAST_LINE)


def mean_since_start(series: JobSeries, throughputs: Throughputs) -> str:
    """Return the problem of a throughput averaged since the start; else empty.

    The mean over an epoch after the first is without the start-up. The throughput of the later half of the lines is
    (n₂ − n₁) / (n₂ / r₂ − n₁ / r₁), of the means r at the steps n; if that is the mean, it is steady.
    """
    metric = series.metric
    if not metric.cumulative or (metric.restarts_each_epoch and np.unique(series.epoch).size > 1):
        return ""
    message = "the throughput is a mean since the start and may include the start-up"
    if metric.restarts_each_epoch or throughputs.step.size < _FEWEST_MEANS:
        return message
    ends = [throughputs.step.size // 2, -1]
    (first, last), means = throughputs.step[ends], throughputs.throughput[ends]
    seconds = last / means[1] - first / means[0]
    later = (last - first) / seconds if seconds > 0 else float("nan")
    if abs(later / means[1] - 1) <= _STEADY_MEAN:
        return ""
    return (
        f"{message}: {means[1]:.4g} {throughputs.unit} by the last line, about {later:.3g} from step {first} to {last}"
    )


def throughput_problems(series: JobSeries, throughputs: Throughputs) -> Iterator[str]:
    """Yield why the throughputs of a series do not count."""
    unusable = int(np.count_nonzero(~_is_usable(series)))
    if exceeds_chance(unusable, series.throughput.size):
        steps = counted(series.throughput.size, "step")
        reason = "the other steps may not represent the run"
        yield f"at {unusable} of {steps} {series.metric.name} gives no throughput above 0: {reason}"
    if throughputs.steady.has_no_single_throughput:
        yield f"no single throughput, because it changes during the run: {listed_levels(throughputs)}"


def listed_levels(throughputs: Throughputs) -> str:
    """Return the throughput of each level of a series with its steps."""
    return ", ".join(level.described(throughputs.unit) for level in throughputs.steady.levels)


def named_windows(throughputs: Throughputs) -> Iterator[tuple[str, Mask]]:
    """Yield the windows of a run by name, with their lines."""
    is_kept = throughputs.steady.window.kept
    is_startup = np.arange(is_kept.size) < throughputs.steady.startup
    yield "warmup", is_startup
    yield "training", is_kept
    yield "left_out", ~(is_startup | is_kept)


def _is_usable(series: JobSeries) -> Mask:
    return np.isfinite(series.throughput) & (series.throughput > 0)


def samples_per_unit(unit: str, extras: Extras, source: LogSource) -> tuple[float, str]:
    """Return the factor to samples and the resulting unit."""
    if unit == _SAMPLES:
        return 1, _SAMPLES
    if extras.samples_per_epoch and unit == "epochs/s":
        return extras.samples_per_epoch, _SAMPLES
    if extras.tokens_per_sample and unit in (_TOKENS, ""):
        return 1 / extras.tokens_per_sample, _SAMPLES
    if unit == _TOKENS:
        return 1, _TOKENS
    if not unit:
        remedy = "state tokens_per_sample, 1 if it counts samples"
        raise LogError(f"{source}: prints a throughput without its unit; {remedy}")
    raise LogError(f"{source}: prints {unit} instead of samples/s; state samples_per_epoch in the metadata")


def _complete_epochs(throughput: Floats, steps: Integers) -> throughput_series.SteadyPart:
    """Return a window of all complete epochs but the first.

    Where there is none, it is of the last one that is not much shorter than the first.
    """
    # Epochs that count no step are as long as each other.
    share = steps / steps.max() if steps.max() > 0 else np.ones(len(steps))
    kept = share >= _COMPLETE_EPOCH
    kept[0] = False
    if not kept.any():
        kept[np.flatnonzero(share >= _SHORTEST_EPOCH)[-1]] = True
    shown = ", ".join(f"{value:.6g}" for value in throughput[-_SHOWN_EPOCHS:])
    count = counted(int(kept.sum()), "epoch")
    return _of_lines(throughput, steps.astype(np.float64), kept, f"{_EPOCH_LINES} {count} of these: {shown}")


def _of_lines(throughput: Floats, weights: Floats, kept: Mask, reason: str) -> throughput_series.SteadyPart:
    """Return a window of lines; each is a mean over its weight."""
    throughputs, steps = elements(throughput, kept), np.maximum(1.0, elements(weights, kept))
    window = throughput_series.ThroughputWindow(
        kept, float(steps.sum() / (steps / throughputs).sum()), float(throughputs.mean()), (reason,)
    )
    steadiness = _ONE_LINE
    if throughputs.size > 1:
        steadiness = steady_state.steadiness_of_usual(1 / throughputs)
    return throughput_series.SteadyPart(window, startup=0, stalls=(), steadiness=steadiness, behaviour=None, levels=())


def _losses(logs: Sequence[ParsedLog], series: JobSeries) -> Floats:
    """Return the mean loss over ranks at each step, or NaN."""
    rows = merge_records([log.records for log in logs]).series("loss")
    if not len(rows):
        return constant(np.nan, series.throughput.size)
    steps = index_steps(rows.epoch, rows.step)
    means = steps.means(rows.values["loss"])
    if np.array_equal(steps.epoch, series.epoch) and np.array_equal(steps.step, series.step):
        return means
    steps_per_epoch = max(int(rows.step.max()), int(series.step.max())) + 2
    # An ordered number for each pair of an epoch and a step.
    loss_keys = (steps.epoch + 1) * steps_per_epoch + steps.step + 1
    throughput_keys = (series.epoch + 1) * steps_per_epoch + series.step + 1
    index = np.minimum(np.searchsorted(loss_keys, throughput_keys), loss_keys.size - 1)
    losses: Floats = np.where(loss_keys[index] == throughput_keys, means[index], np.nan)
    return losses
