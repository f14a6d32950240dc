"""Step times of a run, warm-up, drain and the steps table."""

from collections.abc import Iterator

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import Diagnostic
from dlperf_study.metrics import metric
from dlperf_study.metrics.throughput import makespan_seconds, slowest_rank, slowest_training
from dlperf_study.records.lines import TRAINING, WARMUP
from dlperf_study.records.run import Run
from dlperf_study.study.communication import PUSH_PULL

#: Share of the window that late updates may take after it.
DRAIN_SHARE = 0.05


def step_seconds(run: Run) -> float:
    """Return the seconds of a step: makespan / measured steps."""
    return makespan_seconds(run) / slowest_training(run).steps


def step_variation(step_seconds: Floats) -> float | None:
    """Return standard deviation / mean of steps; None for one."""
    if step_seconds.size > 1:
        return float(step_seconds.std(ddof=1) / step_seconds.mean())
    return None


@metric.once_per_run
def steps_of_job(run: Run) -> Floats:
    """Return the seconds of the measured steps of the job.

    If ranks wait for each other a step of the job takes as long as that of its slowest rank; with an asynchronous
    server the steps of all ranks count.
    """
    step_seconds = run.step_seconds(TRAINING)
    is_asynchronous = run.ranks[0].facts["communication"] == PUSH_PULL
    steps: Floats = np.concatenate(step_seconds) if is_asynchronous else np.max(step_seconds, axis=0)
    return steps


def step_percentile(run: Run, percentile: int) -> float | None:
    """Return a percentile of the job's step times in seconds.

    None with fewer steps than one beyond it needs: 20 for the 95th, 100 for the 99th.
    """
    steps = steps_of_job(run)
    if steps.size * (100 - percentile) >= 100:
        return float(np.percentile(steps, percentile))
    return None


def drain_seconds(run: Run) -> float:
    """Return how long updates were pending after the last rank's window."""
    return float(slowest_rank(run).end["drain_seconds"])


def drain_resolution_seconds(run: Run) -> float:
    """Return the resolution of the drain in seconds."""
    return max(float(log.end["drain_resolution_seconds"]) for log in run.ranks)


def warmup_slowdown(run: Run) -> float | None:
    """Return first warm-up step / measured step of the slowest rank."""
    warmup = run.slowest(WARMUP)
    if warmup is None or not warmup.steps:
        return None
    return float(warmup.step_seconds[0] / np.median(slowest_training(run).step_seconds))


def final_loss(run: Run) -> float | None:
    """Return the mean loss over ranks of the last measured step."""
    losses = [window.losses[-1] for window in run.windows(TRAINING) if window.losses.size]
    return float(np.mean(losses)) if losses else None


def _steps_warmed_up(run: Run) -> int | None:
    warmup = run.slowest(WARMUP)
    if warmup is None or not warmup.ended_by:
        return None
    return warmup.steps


def _warmup_end(run: Run) -> str | None:
    warmup = run.slowest(WARMUP)
    return (warmup and warmup.ended_by) or None


def late_updates(run: Run) -> Iterator[Diagnostic]:
    """Asynchronous updates were pending when the clock stopped."""
    drain, resolution, makespan = drain_seconds(run), drain_resolution_seconds(run), makespan_seconds(run)
    if drain > DRAIN_SHARE * makespan:
        message = f"late updates took {drain:.3g} s of the {makespan:.3g} s that count"
        yield Diagnostic("drain_seconds", f"{message}: the parameter servers are slower than the ranks")
    if resolution > DRAIN_SHARE * makespan:
        message = f"late updates may have taken {resolution:.2g} s more than the resolution shows"
        share = f"{100 * resolution / makespan:.0f} % of what counts"
        yield Diagnostic("drain_seconds", f"{message}, {share}: use a longer window")


def _percentile(percentile: int, missing: tuple[str, ...]) -> metric.Metric:
    """Return the metric of a percentile of the job's step times."""
    fewest = 100 // (100 - percentile)
    definition = (
        f"{percentile}th percentile of step times, slowest rank of each step (asynchronous: all ranks); needs "
        f"{fewest} steps"
    )
    return metric.Metric(
        f"step_p{percentile}_seconds",
        f"Step, p{percentile}",
        definition,
        unit="s",
        value=lambda run: step_percentile(run, percentile),
        summary=metric.Summary.POSITIVE_MEAN,
        # Fast runs have more steps: a percentile of these alone may be below a smaller one of all.
        only_if_all="step_seconds",
        missing=missing,
        part_of="step_seconds",
    )


_TOO_FEW = ("too few steps in some windows",)

METRICS = (
    metric.Metric(
        "step_seconds",
        "Step",
        "slowest rank's window / measured steps",
        unit="s",
        value=step_seconds,
        summary=metric.Summary.POSITIVE_MEAN,
        missing=(metric.only_in_tokens,),
        pages=(metric.COMMUNICATION,),
    ),
    metric.Metric(
        "step_variation",
        "Step variation",
        "standard deviation / mean of step times, slowest rank",
        metric.R,
        value=lambda run: step_variation(slowest_training(run).step_seconds),
    ),
    _percentile(50, ()),
    _percentile(95, _TOO_FEW),
    _percentile(99, _TOO_FEW),
    metric.Metric(
        "drain_seconds",
        "Late updates",
        "parameter-server updates after the last rank's window (lower bound); counted as training",
        metric.R,
        unit="s",
        value=drain_seconds,
        pages=metric.THROUGHPUT_PAGES,
        diagnose=late_updates,
    ),
    metric.whole_number(
        "steps_warmed_up",
        "Warm-up",
        "warm-up steps of each rank",
        metric.R,
        unit="steps",
        value=_steps_warmed_up,
    ),
    metric.text(
        "warmup_end",
        "Warm-up ended",
        "steady: steps converged; limit: time limit; steps: fixed number of steps",
        metric.R,
        value=_warmup_end,
    ),
    metric.whole_number(
        "steps_measured",
        "Measured",
        "steps of the measured window",
        metric.R,
        unit="steps",
        value=lambda run: slowest_training(run).steps,
    ),
    metric.Metric(
        "warmup_slowdown",
        "First step",
        "first warm-up step / median measured step, slowest rank",
        metric.R,
        unit="×",
        value=warmup_slowdown,
    ),
    metric.Metric(
        "final_loss", "Final loss", "loss of the last measured step, mean over ranks", metric.R, value=final_loss
    ),
    metric.Metric(
        "rank",
        "Rank",
        "rank; −1: whole job of ingested logs",
        metric.S,
        dtype=metric.Dtype.INTEGER,
    ),
    metric.text(
        "window",
        "Window",
        "warmup, computation_before, training, computation_after, communication or communication_<bytes>; "
        "ingested logs: also left_out",
        metric.S,
    ),
    metric.Metric(
        "step",
        "Step",
        "step number in its window, from 0; ingested logs: since the start",
        metric.S,
        dtype=metric.Dtype.INTEGER,
    ),
    metric.Metric("seconds", "Step time", "step time on this rank; ingested logs: as printed", metric.S, unit="s"),
    metric.Metric("loss", "Loss", "loss on this rank; missing if not printed", metric.S),
)
