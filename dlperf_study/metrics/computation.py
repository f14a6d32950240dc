"""Computation, data-loading time and load balance of one run.

Computation is measured in two halves, before and after training, so that drift slows both alike. Differences are never
clipped: over runs, only signed ones have the right mean and interval.

The largest of several noisy values is biased. So the slowest rank is chosen by one half, and its excess over the ranks
is taken from the other half. The choosing half alternates from repetition to repetition, so that a rank that becomes
slower is counted on average. Both halves are compared by medians over steps, so that a rare stall chooses no rank. The
excess is added to the mean over all ranks and steps, so the parts of a step add up.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.metrics import metric, statistics, step_times, throughput
from dlperf_study.records.lines import COMPUTATION_AFTER, COMPUTATION_BEFORE, INPUT, TRAINING
from dlperf_study.records.rank_log import RankLog, Window
from dlperf_study.records.run import Run
from dlperf_study.study.communication import NO_COMMUNICATION, PUSH_PULL
from dlperf_study.study.parallel_parameters import SHARDED_PARAMETERS
from dlperf_study.study.study import COMPARISON

#: Standard errors beyond which a difference within a run is no chance, also where steps resemble their neighbours.
ERRORS = 3.0
#: Larger than for a training window. A window of computation has few steps, and with too small an error a rank would be
#: named the straggler that is none.
LARGEST_CORRELATION_OF_FEW = 0.95
#: The subject of a diagnostic about a straggler, which makes the computation of a configuration uneven among ranks.
UNEVEN = "load_balance"
#: A rank is a straggler when its computation takes this many times the median of the other ranks', and not by chance.
STRAGGLER = 1.05


@dataclass(frozen=True)
class RankComputation:
    """Mean computation per step of a rank, and its standard error."""

    mean: float
    error: float
    half_error: float


def communication_kind(run: Run) -> str:
    """Return how gradients are communicated: all_reduce, push_pull, synchronous_push_pull or none."""
    return str(run.ranks[0].facts["communication"])


def ranks_wait(run: Run) -> bool:
    """Return whether ranks wait for each other in every step."""
    return communication_kind(run) not in (NO_COMMUNICATION, PUSH_PULL)


def computation_windows(log: RankLog, communication: str) -> list[Window]:
    """Return a rank's compute-only windows; without communication, its training window."""
    names = (TRAINING,) if communication == NO_COMMUNICATION else (COMPUTATION_BEFORE, COMPUTATION_AFTER)
    return [log.windows[name] for name in names if name in log.windows]


@metric.once_per_run
def rank_computations(run: Run) -> tuple[RankComputation, ...]:
    """Return the computation of each rank; empty if not measured.

    The mean of the means of both halves. Its error is that of the steps, but at least the difference of the halves.
    """
    computations = []
    for log in run.ranks:
        windows = computation_windows(log, communication_kind(run))
        if windows:
            means = [float(window.work_seconds.mean()) for window in windows]
            errors = [mean_error(window.work_seconds) for window in windows]
            error = math.hypot(*errors) / len(errors)
            if len(means) == 2:
                error = max(error, abs(means[0] - means[1]) / 2)
            computations.append(RankComputation(float(np.mean(means)), error, statistics.MEDIAN_ERROR * max(errors)))
    return tuple(computations)


def split_halves(series: Floats) -> tuple[Floats, Floats]:
    """Return both halves of a series; of one step, the series twice."""
    middle = series.size // 2
    if middle:
        return series[:middle], series[middle:]
    return series, series


def halves_of_computation(run: Run, seconds: Callable[[Window], Floats]) -> list[tuple[Floats, Floats]]:
    """Return the compute-only steps of each rank in two halves."""
    halves = []
    for log in run.ranks:
        match computation_windows(log, communication_kind(run)):
            case [before, after]:
                halves.append((seconds(before), seconds(after)))
            case [window]:
                halves.append(split_halves(seconds(window)))
            case _:
                return []
    return halves


@metric.once_per_run
def half_computations(run: Run) -> Floats | None:
    """Return the median computation per step [halves, ranks], or None."""
    halves = halves_of_computation(run, lambda window: window.work_seconds)
    return half_medians(halves) if halves else None


def half_means(halves: Iterable[tuple[Floats, Floats]]) -> Floats:
    """Return means of halved series of steps; shape [halves, ranks]."""
    return np.array([[first.mean(), second.mean()] for first, second in halves]).T


def half_medians(halves: Iterable[tuple[Floats, Floats]]) -> Floats:
    """Return medians of halved series of steps; shape [halves, ranks]."""
    return np.array([[np.median(first), np.median(second)] for first, second in halves]).T


def excess_of_slowest(halves: Floats, run: Run) -> float:
    """Return the slowest rank's excess over the mean, without selection bias.

    ``halves`` [halves, ranks]: one half chooses the rank, the other has its excess.
    """
    choosing, judging = halves if run.repetition % 2 else halves[::-1]
    return float(judging[choosing.argmax()] - judging.mean())


def mean_error(step_seconds: Floats) -> float:
    """Return the standard error of a mean of autocorrelated steps.

    First-order autoregressive process; the correlation is corrected for few steps (Kendall, "Note on bias in the
    estimation of autocorrelation", 1954).
    """
    count, centred = step_seconds.size, step_seconds - step_seconds.mean()
    squares = float(centred @ centred)
    if not squares:
        return 0.0
    correlation = float(centred[1:] @ centred[:-1]) / squares
    corrected = min(max(correlation + (1 + 3 * correlation) / count, 0.0), LARGEST_CORRELATION_OF_FEW)
    return math.sqrt(squares / (count - 1) / count * (1 + corrected) / (1 - corrected))


@metric.once_per_run
def compute_seconds(run: Run) -> float | None:
    """Return the slowest rank's computation per step, or None."""
    halves = half_computations(run)
    if halves is None:
        return None
    return _mean_computation(run) + excess_of_slowest(halves, run)


def _mean_computation(run: Run) -> float:
    return float(np.mean([computation.mean for computation in rank_computations(run)]))


@metric.once_per_run
def computation_error(run: Run) -> float:
    """Return the standard error of ``compute_seconds`` within a run."""
    computations = rank_computations(run)
    errors = [computation.error for computation in computations]
    if len(computations) > 1:
        errors += [computation.half_error for computation in computations]
    return max(errors, default=0.0)


@metric.once_per_run
def input_seconds(run: Run) -> float | None:
    """Return how long waiting for batches lengthens a step, or None.

    Largest computation + wait of a rank − largest computation. A wait during a slower rank's computation lengthens no
    step. If a user's program did not measure its computation: the largest wait of a rank. Waits come in bursts, so
    their means are used.
    """
    computation, waits = half_computations(run), [log.windows[TRAINING].input_seconds for log in run.ranks]
    if not has_input(run) or (computation is None and not run.ranks[0].is_of_program):
        return None
    half_waits = half_means(map(split_halves, waits))
    mean_wait = float(np.mean([wait.mean() for wait in waits]))
    if computation is None:
        return mean_wait + excess_of_slowest(half_waits, run)
    return mean_wait + excess_of_slowest(computation + half_waits, run) - excess_of_slowest(computation, run)


def input_share(run: Run) -> float | None:
    """Return the data-loading stall as a share of a step, or None."""
    return throughput.step_share(run, input_seconds(run))


def has_input(run: Run) -> bool:
    """Return whether the wait for batches was measured."""
    return all(not log.is_of_program or log.windows[TRAINING].has_input for log in run.ranks)


def input_throughput(run: Run) -> float | None:
    """Return samples/s of the input pipeline without training, or None."""
    window = run.slowest(INPUT)
    if window:
        return run.configuration.global_batch / window.mean_seconds
    return None


def rank_waiting_seconds(run: Run) -> float:
    """Return how long the fastest rank waits for the slowest."""
    halves = half_computations(run)
    if halves is None or not ranks_wait(run):
        return 0.0
    return excess_of_slowest(halves, run) + excess_of_slowest(-halves, run)


def load_balance(run: Run) -> float | None:
    """Return mean / slowest computation (POP Centre of Excellence); 1 is even."""
    slowest = compute_seconds(run)
    if slowest is None:
        return None
    return _mean_computation(run) / slowest


def stragglers(run: Run) -> Iterator[Diagnostic]:
    """A rank computes significantly slower, and the others wait for it."""
    computations = rank_computations(run)
    seconds = np.array([computation.mean for computation in computations])
    errors = np.array([computation.error for computation in computations])
    if seconds.size < 2:
        return
    for rank in range(seconds.size):
        usual = float(np.median(np.delete(seconds, rank)))
        error = float(np.hypot(errors[rank], np.delete(errors, rank).max()))
        if seconds[rank] > STRAGGLER * usual and seconds[rank] - usual > ERRORS * error:
            host, factor = run.ranks[rank].facts["host"], seconds[rank] / usual
            yield Diagnostic(UNEVEN, f"straggler: rank {rank} on {host} computes {factor:.2f} times as long as others")


def unmeasured_computation(run: Run) -> Iterator[Diagnostic]:
    """A window of computation was requested and not measured."""
    if run.ranks[0].is_of_program:
        # Its log says why.
        return
    before, after = run.steps_requested.computation_halves(throughput.slowest_training(run).steps)
    windows = (("first", COMPUTATION_BEFORE, before), ("second", COMPUTATION_AFTER, after))
    for half, name, steps in windows:
        if steps and communication_kind(run) != NO_COMMUNICATION and not run.windows(name):
            if obstacle := run.ranks[0].end.get("computation_obstacle"):
                message = f"no compute-only step was measured: {obstacle}"
                yield Diagnostic("compute_seconds", message, Severity.NOTE)
                return
            message = f"the {half} compute-only window was requested and is missing"
            yield Diagnostic("compute_seconds", message, Severity.ERROR)


def broken_down_step_seconds(run: Run) -> float | None:
    """Return the step time of runs with a breakdown."""
    if not run.configuration.is_broken_down(run.repetition) and compute_seconds(run) is None:
        return None
    return step_times.step_seconds(run)


def trained_alone(gap: metric.Gap) -> str:
    """Return why no run has a breakdown: all train alone; else empty."""
    first = gap.runs["breakdown_from"].fillna(1)
    is_alone = (gap.runs["repetition"] < first).all()
    if is_alone:
        return f"no completed run from run {first.max()} on (breakdown_from)"
    return ""


def divided_model(gap: metric.Gap) -> str:
    """Return why a sharded model has no compute-only steps; else empty."""
    if not (gap.runs["world_size"] > 1).all():
        return ""
    if (gap.runs["tensor_parallel"].fillna(1) > 1).all():
        return "its matrices are sharded: every step communicates activations"
    if (gap.runs["pipeline_parallel"].fillna(1) > 1).all():
        return "its layers are split into stages: every step sends activations"
    is_sharded = (gap.runs["zero_stage"].fillna(0) >= SHARDED_PARAMETERS).all()
    if is_sharded:
        return "its parameters are sharded: every step gathers them"
    return ""


def run_trained_alone(row: Any) -> str:
    """Return why a run has no breakdown; empty if it was planned."""
    first = row.breakdown_from
    is_alone = pd.notna(first) and row.repetition < first
    if is_alone:
        return f"measured from run {first} on (breakdown_from)"
    return ""


def computation_obstacle(gap: metric.Gap) -> str:
    """Return why no run measured its computation."""
    return "; ".join(dict.fromkeys(gap.messages("compute_seconds"))) or NO_COMPUTATION


NO_COMPUTATION = "compute-only time was not measured"
NO_PARTS = (trained_alone, divided_model, metric.not_measured_by_program, computation_obstacle)
_part = partial(metric.Metric, missing=NO_PARTS, missing_of_run=run_trained_alone)
METRICS = (
    _part(
        "broken_down_step_seconds",
        "Step in parts",
        "step time of the runs with a breakdown; its parts add up to it",
        unit="s",
        value=broken_down_step_seconds,
        summary=metric.Summary.POSITIVE_MEAN,
        part_of="step_seconds",
    ),
    _part(
        "compute_seconds",
        "Computation",
        "slowest rank's compute-only step without data-loading stall; one half selects the rank, the other measures it",
        unit="s",
        value=compute_seconds,
        summary=metric.Summary.POSITIVE_MEAN,
        part_of="step_seconds",
        pages=(metric.COMMUNICATION, COMPARISON),
        diagnose=unmeasured_computation,
    ),
    _part(
        "input_seconds",
        "Data-loading stall",
        "step time added by data stalls; without measured computation, the largest wait of a rank",
        unit="s",
        value=input_seconds,
        summary=metric.Summary.MEAN,
        limits=(0.0, math.inf),
        part_of="step_seconds",
        pages=(metric.COMMUNICATION, COMPARISON),
    ),
    _part(
        "input_share",
        "Input share",
        "data-loading stall / step of the same run",
        value=input_share,
        summary=metric.Summary.SHARE,
        limits=(0.0, 1.0),
        pages=(metric.COMMUNICATION,),
    ),
    _part(
        "input_throughput",
        "Input throughput",
        "data loader alone: global batch / slowest rank's time per batch",
        unit="samples/s",
        value=input_throughput,
        summary=metric.Summary.GEOMETRIC,
        missing=(
            metric.not_measured_by_program,
            trained_alone,
            "no step waits for its batch, or the data loader alone was not measured",
        ),
        part_of="throughput",
        pages=(metric.COMMUNICATION,),
    ),
    _part(
        "load_balance",
        "Load balance",
        "mean computation over ranks / computation of the slowest rank; 1: balanced",
        value=load_balance,
        summary=metric.Summary.POSITIVE_MEAN,
        pages=(metric.COMMUNICATION,),
        diagnose=stragglers,
    ),
)
