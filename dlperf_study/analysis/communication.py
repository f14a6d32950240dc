"""The parts of a step in one run: computation, waiting for batches, and the exposed part of the exchange.

Computation alone is measured in two halves, before and after training, so that a machine that drifts through a run
slows both alike. Differences are never clipped: over runs, only signed ones have the right mean and interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dlperf_study.analysis.throughput import makespan_seconds, slowest_training
from dlperf_study.arrays import Floats
from dlperf_study.evidence.rank_agreement import ALL_REDUCE, NO_EXCHANGE, SYNCHRONOUS_PUSH_PULL
from dlperf_study.evidence.rank_log import RankLog, Window
from dlperf_study.evidence.rank_log_writer import COMPUTATION_AFTER, COMPUTATION_BEFORE, EXCHANGE, INPUT, TRAINING
from dlperf_study.evidence.run import Run

#: Standard errors beyond which a difference within a run is no chance, also where steps resemble their neighbours.
ERRORS = 3.0
#: Larger than for a training window. A window of computation has few steps, and with too small an error a rank would be
#: named the straggler that is none.
LARGEST_CORRELATION_OF_FEW = 0.95
#: The least share of its mean by which the mean of an exchange is uncertain, whatever its few repetitions say.
LEAST_EXCHANGE_ERROR = 0.01


@dataclass(frozen=True)
class RankComputation:
    """The mean computation step of a rank in seconds, without the wait for its batch, and its standard error.

    ``input_wait``: mean seconds for which a step of its training window waited for its batch.
    """

    mean: float
    error: float
    input_wait: float


@dataclass(frozen=True)
class ExchangeCost:
    """What an exchange of any size costs: ``latency_seconds`` + bytes × ``seconds_per_byte``."""

    latency_seconds: float
    seconds_per_byte: float


def communication_of(run: Run) -> dict[str, float | None]:
    """Return the columns on computation and communication of a completed run."""
    exchange, cost = run.slowest(EXCHANGE), exchange_cost(run)
    return {
        "computation_seconds": computation_seconds(run),
        "input_seconds": input_seconds(run),
        "input_rate": input_rate(run),
        "exposed_seconds": exposed_seconds(run),
        "jitter_seconds": None if exchange_kind(run) == NO_EXCHANGE else jitter_seconds(run),
        "exchange_seconds": exchange.mean_seconds if exchange else None,
        "exchange_latency_seconds": cost.latency_seconds if cost else None,
        "exchange_bandwidth": link_bandwidth(run),
        "overlap": overlap(run),
        "bus_bandwidth": bus_bandwidth(run),
        "load_balance": load_balance(run),
    }


def exchange_kind(run: Run) -> str:
    """Return how gradients are exchanged: all_reduce, push_pull, synchronous_push_pull or none."""
    return str(run.ranks[0].facts["exchange"])


def ranks_wait(run: Run) -> bool:
    """Return whether ranks wait for each other in every step; one rank without a server has none to wait for."""
    return exchange_kind(run) in (ALL_REDUCE, SYNCHRONOUS_PUSH_PULL)


def computation_windows(log: RankLog, exchange: str) -> list[Window]:
    """Return the windows of a rank without exchange; where nothing is exchanged that is the training window."""
    names = (TRAINING,) if exchange == NO_EXCHANGE else (COMPUTATION_BEFORE, COMPUTATION_AFTER)
    return [log.windows[name] for name in names if name in log.windows]


#: The row and the diagnostics of one run call it ten times.
@lru_cache(maxsize=1)
def rank_computations(run: Run) -> tuple[RankComputation, ...]:
    """Return the computation of each rank, in order of rank; none where it was not measured.

    The mean of the means of both halves. Its error is that of the steps, but at least what the halves differ by.
    """
    computations = []
    for log in run.ranks:
        windows = computation_windows(log, exchange_kind(run))
        if windows:
            means = [float(window.work_seconds.mean()) for window in windows]
            errors = [mean_error(window.work_seconds) for window in windows]
            error = math.hypot(*errors) / len(errors)
            if len(means) == 2:
                error = max(error, abs(means[0] - means[1]) / 2)
            input_wait = float(log.windows[TRAINING].input_seconds.mean())
            computations.append(RankComputation(float(np.mean(means)), error, input_wait))
    return tuple(computations)


def _mean_computations(run: Run) -> list[float]:
    return [computation.mean for computation in rank_computations(run)]


def mean_error(step_seconds: Floats) -> float:
    """Return the standard error of the mean of successive steps, which resemble their neighbours; 0 for one step.

    As of a first-order autoregressive process; the correlation of neighbours is corrected for few steps (Kendall,
    "Note on bias in the estimation of autocorrelation", 1954).
    """
    count, centred = step_seconds.size, step_seconds - step_seconds.mean()
    squares = float(centred @ centred)
    if not squares:
        return 0.0
    correlation = float(centred[1:] @ centred[:-1]) / squares
    corrected = min(max(correlation + (1 + 3 * correlation) / count, 0.0), LARGEST_CORRELATION_OF_FEW)
    return math.sqrt(squares / (count - 1) / count * (1 + corrected) / (1 - corrected))


def slowest_computation(run: Run) -> RankComputation | None:
    """Return the computation of the rank that computes longest, or None if that was not measured."""
    return max(rank_computations(run), key=lambda computation: computation.mean, default=None)


def computation_seconds(run: Run) -> float | None:
    """Return seconds per step without exchange and input, of the slowest rank, or None if that was not measured."""
    slowest = slowest_computation(run)
    return slowest.mean if slowest else None


def input_seconds(run: Run) -> float | None:
    """Return by how many seconds waiting for batches lengthens a step, or None if computation was not measured.

    Largest computation + input wait of a rank − largest computation. What a rank waits for its batch while a slower one
    computes lengthens no step.
    """
    computations = rank_computations(run)
    if not computations:
        return None
    longest = max(computation.mean + computation.input_wait for computation in computations)
    return longest - max(_mean_computations(run))


def input_rate(run: Run) -> float | None:
    """Return the samples/s that the data source delivers to all ranks while nothing trains; None if not measured."""
    window = run.slowest(INPUT)
    return run.configuration.global_batch / window.mean_seconds if window else None


def exposed_seconds(run: Run) -> float | None:
    """Return step − computation − input per step; negative when the step was faster than these two."""
    computation, waiting = computation_seconds(run), input_seconds(run)
    if computation is None or waiting is None:
        return None
    if exchange_kind(run) == NO_EXCHANGE:
        # The computation is what the step is without the wait, up to rounding.
        return 0.0
    return makespan_seconds(run) / slowest_training(run).steps - computation - waiting


def exposed_error_seconds(run: Run) -> float:
    """Return the standard error of step − computation − input within a run."""
    slowest = slowest_computation(run)
    return math.hypot(mean_error(slowest_training(run).work_seconds), slowest.error if slowest else 0.0)


@lru_cache(maxsize=1)
def jitter_seconds(run: Run) -> float | None:
    """Return how long a step waits because in each step a different rank is slow; part of what is exposed.

    Mean over steps of the slowest rank − mean of the rank that is slowest on average, in computation without exchange.
    0 where ranks don't wait for each other. None where they wait inside their computation, as with a sharded
    classifier, and where computation was not measured.
    """
    if not ranks_wait(run):
        return 0.0
    halves = [computation_windows(log, exchange_kind(run)) for log in run.ranks]
    if run.configuration.classifier == "sharded" or not all(halves):
        return None
    excesses = []
    for windows in zip(*halves, strict=True):
        steps = np.stack([window.step_seconds for window in windows])
        excesses.append(steps.max(axis=0).mean() - steps.mean(axis=1).max())
    return float(np.mean(excesses))


def overlap(run: Run) -> float | None:
    """Return 1 − exposed / pure communication, without the waiting for jitter, which no overlap hides.

    1 is completely overlapped; below 0 the step waits for more than the exchange. Above 1 by chance. None where a part
    was not measured, jitter included, and where threads share cores: then the exchange takes from the computation what
    it hides in it.
    """
    exposed, exchange, jitter = exposed_seconds(run), run.slowest(EXCHANGE), jitter_seconds(run)
    if exposed is None or exchange is None or jitter is None or shared_cores(run):
        return None
    return 1 - (exposed - jitter) / exchange.mean_seconds


def shared_cores(run: Run) -> str:
    """Return why computation and exchange share cores on some host of CPU ranks; empty where they don't.

    Each rank has its threads and those with which its library exchanges; parameter servers are processes of their own.
    """
    facts, configuration = run.ranks[0].facts, run.configuration
    cores = run.facts["environment"]["hardware"].get("cores")
    if facts["device"] != "cpu" or not cores:
        return ""
    threads, helpers = configuration.threads_per_device, facts["exchange_threads"]
    hosts = len({log.facts["host"] for log in run.ranks})
    processes = configuration.world_size / hosts
    if configuration.cpu_limit and threads + helpers > configuration.cpu_limit:
        return f"{threads + helpers:g} threads of a rank and its exchange share its {configuration.cpu_limit:g} cores"
    needed = processes * (threads + helpers) + configuration.servers / hosts
    if needed <= cores:
        return ""
    return f"{needed:g} threads of ranks, exchange and servers share {cores} cores"


def unexplained_waiting_seconds(run: Run) -> float:
    """Return how much longer a step waits than the exchange takes alone; 0 where either is unknown."""
    exposed, exchange = exposed_seconds(run), run.slowest(EXCHANGE)
    return 0.0 if exposed is None or exchange is None else max(0.0, exposed - exchange.mean_seconds)


def rank_waiting_seconds(run: Run) -> float:
    """Return how long the fastest rank waits for the slowest in a step, by their computation times.

    0 if ranks don't wait for each other: with one rank, and with an asynchronous server.
    """
    if not ranks_wait(run):
        return 0.0
    seconds = _mean_computations(run)
    return max(seconds) - min(seconds) if seconds else 0.0


def bus_bandwidth(run: Run) -> float | None:
    """Return bytes/s on the links during an all-reduce of all gradients: bytes / t × 2(n−1)/n.

    None for any other exchange and for one device. Formula: nccl-tests, doc/PERFORMANCE.md.
    """
    devices, exchange = run.configuration.world_size, run.slowest(EXCHANGE)
    if exchange_kind(run) != ALL_REDUCE or devices < 2 or exchange is None or exchange.bytes is None:
        return None
    return exchange.bytes / exchange.mean_seconds * bus_factor(devices)


def bus_factor(devices: int) -> float:
    """Return how many bytes each link carries in an all-reduce for each byte that is reduced (nccl-tests)."""
    return 2 * (devices - 1) / devices


@lru_cache(maxsize=1)
def exchange_cost(run: Run) -> ExchangeCost | None:
    """Return latency and seconds per byte, fitted to exchanges of several sizes; None below three sizes.

    Weighted least squares of the slowest rank's mean times, each with the weight 1 / error².
    """
    names = [name for name in run.ranks[0].windows if name.startswith(EXCHANGE)] if run.ranks else []
    windows = [window for name in names if (window := run.slowest(name)) and window.bytes]
    if len(windows) < 3:
        return None
    sizes = np.array([window.bytes for window in windows], dtype=np.float64)
    return fitted_cost(sizes, windows)


def link_bandwidth(run: Run) -> float | None:
    """Return bytes/s on the links as the cost of an exchange grows with its size, its latency left out.

    None where ``bus_bandwidth`` is, without that cost, and where noise makes larger exchanges faster.
    """
    cost = exchange_cost(run)
    if bus_bandwidth(run) is None or cost is None or cost.seconds_per_byte <= 0:
        return None
    return bus_factor(run.configuration.world_size) / cost.seconds_per_byte


def fitted_cost(sizes: Floats, windows: Sequence[Window]) -> ExchangeCost:
    """Return the weighted least-squares line through the mean times of exchanges; ``sizes`` in bytes."""
    seconds = np.array([window.mean_seconds for window in windows])
    errors = np.array([mean_error(window.step_seconds) for window in windows])
    weights = 1 / np.maximum(errors, LEAST_EXCHANGE_ERROR * seconds)
    terms = np.stack([np.ones_like(sizes), sizes], axis=1)
    (latency, per_byte), *_ = np.linalg.lstsq(terms * weights[:, None], seconds * weights, rcond=None)
    return ExchangeCost(float(latency), float(per_byte))


def load_balance(run: Run) -> float | None:
    """Return mean / maximum over ranks of the computation time (POP Centre of Excellence); 1 is even."""
    seconds = _mean_computations(run)
    return float(np.mean(seconds) / max(seconds)) if seconds else None
