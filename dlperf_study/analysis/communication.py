"""The cost of the gradient exchange, and the part of it that overlaps with computation."""

import numpy as np

from dlperf_study.analysis.throughput import slowest_training
from dlperf_study.evidence.rank_agreement import ALL_REDUCE, NO_EXCHANGE
from dlperf_study.evidence.rank_log import COMPUTATION, EXCHANGE, TRAINING, Window
from dlperf_study.evidence.run import Run


def communication_of(run: Run) -> dict[str, float | None]:
    """Return the columns on computation and communication of a completed run."""
    exchange = run.slowest(EXCHANGE)
    return {
        "computation_seconds": computation_seconds(run),
        "exposed_seconds": exposed_seconds(run),
        "exchange_seconds": exchange.mean_seconds if exchange else None,
        "overlap": overlap(run),
        "bus_bandwidth": bus_bandwidth(run),
        "load_balance": load_balance(run),
    }


def exchange_kind(run: Run) -> str:
    """Return how gradients are exchanged: all_reduce, push_pull or none."""
    return str(run.ranks[0].facts["exchange"])


def computation_seconds(run: Run) -> float | None:
    """Return seconds per step without exchange, of the slowest rank, or None if that was not measured."""
    window = max(computation_windows(run), key=lambda window: window.seconds, default=None)
    return window.mean_seconds if window else None


def computation_windows(run: Run) -> list[Window]:
    """Return each rank's computation-only window; where nothing is exchanged that is the training window."""
    return run.windows(TRAINING if exchange_kind(run) == NO_EXCHANGE else COMPUTATION)


def unclipped_exposed_seconds(run: Run) -> float | None:
    """Return step − computation per step; negative when the step was faster than its computation alone."""
    computation = computation_seconds(run)
    return None if computation is None else slowest_training(run).mean_seconds - computation


def exposed_seconds(run: Run) -> float | None:
    """Return the seconds per step of communication that is not overlapped, never below 0."""
    exposed = unclipped_exposed_seconds(run)
    return None if exposed is None else max(0.0, exposed)


def exposed_noise_seconds(run: Run) -> float:
    """Return two standard errors of step − computation: the difference that the spread of the steps explains."""
    longest = max(computation_windows(run), key=lambda window: window.seconds)
    variances = [w.step_seconds.var(ddof=1) / w.steps for w in (slowest_training(run), longest) if w.steps > 1]
    return float(2 * np.sqrt(sum(variances)))


def overlap(run: Run) -> float | None:
    """Return 1 − exposed / pure communication: 1 is completely overlapped, below 0 the step waits for more than that.

    None if the step was faster than its computation alone: the difference is nothing but noise.
    """
    exposed, exchange = unclipped_exposed_seconds(run), run.slowest(EXCHANGE)
    return None if exposed is None or exposed < 0 or exchange is None else 1 - exposed / exchange.mean_seconds


def unexplained_waiting_seconds(run: Run) -> float:
    """Return how much longer a step waits than the exchange takes alone; 0 where either is unknown."""
    exposed, exchange = exposed_seconds(run), run.slowest(EXCHANGE)
    return 0.0 if exposed is None or exchange is None else max(0.0, exposed - exchange.mean_seconds)


def rank_waiting_seconds(run: Run) -> float:
    """Return how long the fastest rank waits for the slowest in a step, by their computation times.

    0 if ranks don't wait for each other: with one rank, and with a server.
    """
    if exchange_kind(run) != ALL_REDUCE:
        return 0.0
    seconds = [window.mean_seconds for window in computation_windows(run)]
    return max(seconds) - min(seconds) if seconds else 0.0


def bus_bandwidth(run: Run) -> float | None:
    """Return bytes/s on the links during an all-reduce: bytes / t × 2(n−1)/n.

    None for any other exchange and for one device. Formula: nccl-tests, doc/PERFORMANCE.md.
    """
    devices, exchange = run.configuration.world_size, run.slowest(EXCHANGE)
    if exchange_kind(run) != ALL_REDUCE or devices < 2 or exchange is None or exchange.bytes is None:
        return None
    return exchange.bytes / exchange.mean_seconds * 2 * (devices - 1) / devices


def load_balance(run: Run) -> float | None:
    """Return mean / maximum over ranks of the computation time (POP Centre of Excellence); 1 is even."""
    seconds = [window.mean_seconds for window in computation_windows(run)]
    return float(np.mean(seconds) / max(seconds)) if seconds else None
