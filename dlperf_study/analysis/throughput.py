"""The throughput of a run. A job is as slow as its slowest rank, so the slowest rank represents all."""

import numpy as np

from dlperf_study.arrays import Floats
from dlperf_study.evidence.rank_log import TRAINING, WARMUP, Window
from dlperf_study.evidence.run import Run


def throughput_of(run: Run) -> dict[str, float | None]:
    """Return the columns on the rate and the steps of a completed run."""
    window = slowest_training(run)
    return {
        "throughput": throughput(run),
        "mean_of_rates": mean_of_rates(run),
        "step_seconds": window.mean_seconds,
        "step_variation": step_variation(window.step_seconds),
        "mfu": model_flops_utilisation(run),
        "drain_seconds": drain_seconds(run),
        "warmup_slowdown": warmup_slowdown(run),
        "final_loss": final_loss(run),
    }


def slowest_training(run: Run) -> Window:
    """Return the training window of the rank that took longest; every completed run has one."""
    return max(run.windows(TRAINING), key=lambda window: window.seconds)


def throughput(run: Run) -> float:
    """Return samples/s of the whole job: global batch × measured steps / slowest rank's window."""
    window = slowest_training(run)
    return run.configuration.global_batch * window.steps / window.seconds


def mean_of_rates(run: Run) -> float:
    """Return the arithmetic mean of the slowest rank's per-step rates, in samples/s.

    Never below ``throughput``; for comparison with results that were published in this way.
    """
    return float(np.mean(run.configuration.global_batch / slowest_training(run).step_seconds))


def step_variation(step_seconds: Floats) -> float | None:
    """Return standard deviation / mean of the steps of a window; None for a single step."""
    return float(step_seconds.std(ddof=1) / step_seconds.mean()) if step_seconds.size > 1 else None


def model_flops_utilisation(run: Run) -> float | None:
    """Return throughput × FLOPs per sample / (devices × peak), or None if FLOPs or peak are unknown.

    Formula: Chowdhery et al., "PaLM" (2022), appendix B.
    """
    flops, peak = run.ranks[0].facts.get("flops_per_sample"), run.facts["cluster"].get("device_peak_flops")
    if not flops or not peak:
        return None
    return throughput(run) * float(flops) / (run.configuration.world_size * float(peak))


def drain_seconds(run: Run) -> float:
    """Return the longest time a rank waited for pending updates after its window."""
    return max(float(log.end["drain_seconds"]) for log in run.ranks)


def warmup_slowdown(run: Run) -> float | None:
    """Return how many times longer the first warm-up step took than a measured one, on the slowest rank."""
    warmup = run.slowest(WARMUP)
    if warmup is None or not warmup.steps:
        return None
    return float(warmup.step_seconds[0] / np.median(slowest_training(run).step_seconds))


def final_loss(run: Run) -> float | None:
    """Return the loss of the last measured step, as the mean over ranks."""
    losses = [window.losses[-1] for window in run.windows(TRAINING) if window.losses.size]
    return float(np.mean(losses)) if losses else None
