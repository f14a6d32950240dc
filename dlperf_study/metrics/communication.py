"""Communication of one run: exposed in a step, and standalone."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.metrics import collectives, computation, metric, process_resources, step_times, throughput
from dlperf_study.records.lines import COMMUNICATION_ALONE
from dlperf_study.records.rank_log import Window
from dlperf_study.records.run import Run
from dlperf_study.study.communication import ALL_REDUCE, COLLECTIVES, NO_COMMUNICATION
from dlperf_study.study.study import COMPARISON, PUBLISHED

#: The least share of its mean by which the mean of a transfer is uncertain, whatever its few repetitions say.
LEAST_COMMUNICATION_ERROR = 0.01
#: Below it, synchronisation jitter of a configuration is not reported.
MIN_JITTER_SECONDS = 0.002
#: How many bytes each link carries in an all-reduce for each byte that is reduced.
_, _bus_factor = collectives.BUS_FACTORS[ALL_REDUCE]
#: Possible explanations of a step that waits longer than the communication takes.
WAITING = "waiting for a slower rank counts as communication here, and can explain that"
OVERHEAD = "not explained by a slower rank; hooks, copies or contention may"
RANKS_WAIT = "ranks wait for each other inside their computation"
#: How a diagnostic begins that says why the overlap is missing.
NOT_GIVEN = "not given: "


@dataclass(frozen=True)
class CommunicationCost:
    """Time of an all-reduce: ``latency_seconds`` + bytes × ``seconds_per_byte``."""

    latency_seconds: float
    seconds_per_byte: float


@metric.once_per_run
def exposed_communication_seconds(run: Run) -> float | None:
    """Return step − computation − input per step; may be negative."""
    seconds_without_communication, waiting = computation.compute_seconds(run), computation.input_seconds(run)
    if seconds_without_communication is None:
        return None
    if computation.communication_kind(run) == NO_COMMUNICATION:
        # The computation is what the step is without the wait, up to rounding.
        return 0.0
    # Of a program that does not measure the wait, it is part of both.
    return step_times.step_seconds(run) - seconds_without_communication - (waiting or 0.0)


def exposed_communication_share(run: Run) -> float | None:
    """Return exposed communication as a share of a step, or None."""
    return throughput.step_share(run, exposed_communication_seconds(run))


@metric.once_per_run
def exposed_error_seconds(run: Run) -> float:
    """Return the standard error of exposed communication within a run."""
    step_error = computation.mean_error(throughput.slowest_training(run).work_seconds)
    return math.hypot(step_error, computation.computation_error(run))


@metric.once_per_run
def jitter_seconds(run: Run) -> float | None:
    """Return how long a step waits for random stragglers; part of exposed.

    Mean over steps of the slowest rank − mean of the rank that is slowest on average, in compute-only steps;
    by chance below 0. 0 if ranks don't wait for each other. None if they wait inside their computation, as with a
    sharded classifier, and if computation was not measured.
    """
    if not computation.ranks_wait(run):
        return 0.0
    halves = computation.halves_of_computation(run, lambda window: window.step_seconds)
    if not halves or run.configuration.classifier == "sharded":
        return None
    mean = computation.half_means(halves).mean()
    of_steps = [np.stack(half).max(axis=0).mean() for half in zip(*halves, strict=True)]
    # The same slowest rank as of the computation: what is exposed without jitter holds nothing of how it was chosen.
    return float(np.mean(of_steps) - mean) - computation.excess_of_slowest(computation.half_medians(halves), run)


def overlap(run: Run) -> float | None:
    """Return 1 − (exposed − jitter) / standalone communication.

    Above 1 by chance. None if a part was not measured, and if threads share cores.
    """
    exposed, alone, jitter = exposed_communication_seconds(run), run.slowest(COMMUNICATION_ALONE), jitter_seconds(run)
    if exposed is None or alone is None or jitter is None or process_resources.shared_cores(run):
        return None
    return 1 - (exposed - jitter) / alone.mean_seconds


def unexplained_waiting_seconds(run: Run) -> float:
    """Return the exposed time beyond the standalone time; 0 if unknown."""
    exposed, alone = exposed_communication_seconds(run), run.slowest(COMMUNICATION_ALONE)
    if exposed is None or alone is None:
        return 0.0
    return max(0.0, exposed - alone.mean_seconds)


def bus_bandwidth(run: Run) -> float | None:
    """Return the bus bandwidth of an all-reduce: bytes / t × 2(n−1)/n (nccl-tests)."""
    devices, alone = run.configuration.world_size, run.slowest(COMMUNICATION_ALONE)
    if computation.communication_kind(run) != ALL_REDUCE or devices < 2 or alone is None or alone.bytes is None:
        return None
    return alone.bytes / alone.mean_seconds * _bus_factor(devices)


@metric.once_per_run
def communication_cost(run: Run) -> CommunicationCost | None:
    """Return latency and seconds per byte, by least squares over sizes."""
    if not run.ranks or computation.communication_kind(run) == COLLECTIVES:
        return None
    names = filter(lambda name: name.startswith(COMMUNICATION_ALONE), run.ranks[0].windows)
    windows = [window for window in map(run.slowest, names) if window and window.bytes]
    if len(windows) < 3:
        return None
    sizes = np.array([window.bytes for window in windows], dtype=np.float64)
    return fitted_cost(sizes, windows)


def link_bandwidth(run: Run) -> float | None:
    """Return the bus bandwidth without latency, from the fitted cost."""
    cost = communication_cost(run)
    if bus_bandwidth(run) is None or cost is None or cost.seconds_per_byte <= 0:
        return None
    return _bus_factor(run.configuration.world_size) / cost.seconds_per_byte


def fitted_cost(sizes: Floats, windows: Sequence[Window]) -> CommunicationCost:
    """Return the weighted least-squares line of time over bytes."""
    seconds = np.array([window.mean_seconds for window in windows])
    errors = np.array([computation.mean_error(window.step_seconds) for window in windows])
    weights = 1 / np.maximum(errors, LEAST_COMMUNICATION_ERROR * seconds)
    terms = np.stack([np.ones_like(sizes), sizes], axis=1)
    (latency, per_byte), *_ = np.linalg.lstsq(terms * weights[:, None], seconds * weights, rcond=None)
    return CommunicationCost(float(latency), float(per_byte))


def communication_seconds(run: Run) -> float | None:
    """Return the slowest rank's standalone communication time, or None."""
    alone = run.slowest(COMMUNICATION_ALONE)
    return alone.mean_seconds if alone else None


def _jitter_of_communication(run: Run) -> float | None:
    if computation.communication_kind(run) == NO_COMMUNICATION:
        return None
    return jitter_seconds(run)


def _communication_latency(run: Run) -> float | None:
    cost = communication_cost(run)
    return cost.latency_seconds if cost else None


def negative_communication(run: Run) -> Iterator[Diagnostic]:
    """A step is shorter than its computation, beyond its spread."""
    exposed = exposed_communication_seconds(run)
    if exposed is not None and exposed < -computation.ERRORS * exposed_error_seconds(run):
        message = f"the step takes {-exposed:.3g} s less than its compute-only step"
        yield Diagnostic(
            "exposed_communication_seconds", f"{message}. The machine may have been slower in the windows around it"
        )


def doubtful_overlap(run: Run) -> Iterator[Diagnostic]:
    """Exposed exceeds standalone communication, or the overlap is missing."""
    exposed, alone, overlapped = exposed_communication_seconds(run), run.slowest(COMMUNICATION_ALONE), overlap(run)
    if exposed is None or alone is None:
        return
    if overlapped is not None:
        if overlapped < -computation.ERRORS * exposed_error_seconds(run) / alone.mean_seconds:
            message = f"the step waits {1 - overlapped:.2f} times as long for the communication as it takes on its own"
            waits_for_ranks = computation.rank_waiting_seconds(run) >= unexplained_waiting_seconds(run)
            yield Diagnostic("overlap", f"{message}: {WAITING if waits_for_ranks else OVERHEAD}")
    elif reason := process_resources.shared_cores(run):
        message = f"{NOT_GIVEN}{reason}, so overlapped communication slows the computation"
        yield Diagnostic("overlap", message, Severity.NOTE)
    elif jitter_seconds(run) is None:
        message = f"{NOT_GIVEN}{RANKS_WAIT}, so synchronisation jitter is unknown"
        yield Diagnostic("overlap", message, Severity.NOTE)


def unmeasured_communication(run: Run) -> Iterator[Diagnostic]:
    """The window of communication alone was requested and not measured."""
    is_requested = (
        run.steps_requested.communication_only_steps and computation.communication_kind(run) != NO_COMMUNICATION
    )
    if is_requested and not run.windows(COMMUNICATION_ALONE):
        yield Diagnostic(
            "communication_seconds", "the communication-only window was requested and is missing", Severity.ERROR
        )


nothing_to_communicate = metric.reason_if(
    lambda gap: set(gap.runs["communication"]) == {NO_COMMUNICATION}, "nothing to communicate"
)


def _not_communicated_in_run(row: Any) -> str:
    if row.communication == NO_COMMUNICATION:
        return "nothing to communicate"
    return computation.run_trained_alone(row)


def _no_overlap(gap: metric.Gap) -> str:
    """Return why the overlap is missing despite measured communication."""
    if not gap.has("communication_seconds"):
        return ""
    for message in gap.messages("overlap"):
        if message.startswith(NOT_GIVEN):
            return message.removeprefix(NOT_GIVEN)
    return f"{computation.NO_COMPUTATION} in each of its runs"


_not_alone = metric.reason_if(lambda gap: not gap.has("communication_seconds"), "communication alone was not measured")
_no_jitter = metric.reason_if(lambda gap: gap.row.classifier == "sharded", RANKS_WAIT)
_small_jitter = metric.reason_if(
    lambda gap: gap.runs["jitter_seconds"].notna().any(), "below 2 ms, so it is not reported"
)
_other_communication = metric.reason_if(
    lambda gap: set(gap.runs["communication"]) != {ALL_REDUCE}, "defined for an all-reduce only"
)
_no_bandwidth = metric.reason_if(
    lambda gap: gap.has("communication_latency_seconds") and gap.has("bus_bandwidth"),
    "larger transfers took no longer than smaller ones",
)
_NO_COST = "transfers of one kind in three sizes were not measured alone"
_NO_COMMUNICATION = (nothing_to_communicate, computation.trained_alone, metric.not_measured_by_program, _not_alone)
_NO_BUS_BANDWIDTH = (*_NO_COMMUNICATION, _other_communication)
_communication = partial(metric.Metric, missing_of_run=_not_communicated_in_run, pages=(metric.COMMUNICATION,))
METRICS = (
    _communication(
        "exposed_communication_seconds",
        "Exposed communication",
        "step − computation − data-loading stall; negative values are noise",
        unit="s",
        value=exposed_communication_seconds,
        summary=metric.Summary.MEAN,
        missing=(nothing_to_communicate, *computation.NO_PARTS),
        part_of="step_seconds",
        pages=(metric.COMMUNICATION, COMPARISON),
        diagnose=negative_communication,
    ),
    _communication(
        "exposed_communication_share",
        "Exposed share",
        "exposed communication / step of the same run; negative values are noise",
        value=exposed_communication_share,
        summary=metric.Summary.SHARE,
        limits=(-math.inf, 1.0),
        missing=(nothing_to_communicate, *computation.NO_PARTS),
        pages=(metric.COMMUNICATION, PUBLISHED),
    ),
    _communication(
        "jitter_seconds",
        "Synchronisation jitter",
        "exposed communication caused by a different slowest rank in each step; below 2 ms not reported per "
        "configuration",
        unit="s",
        value=_jitter_of_communication,
        summary=metric.Summary.MEAN,
        smallest=MIN_JITTER_SECONDS,
        missing=(nothing_to_communicate, _small_jitter, _no_jitter, *computation.NO_PARTS),
        part_of="step_seconds",
    ),
    _communication(
        "communication_seconds",
        "Communication-only time",
        "communication-only time per step, slowest rank",
        unit="s",
        value=communication_seconds,
        summary=metric.Summary.POSITIVE_MEAN,
        missing=(nothing_to_communicate, computation.trained_alone),
        part_of="step_seconds",
        diagnose=unmeasured_communication,
    ),
    _communication(
        "communication_latency_seconds",
        "Communication latency",
        "fit of communication-only time over bytes: t = latency + bytes / bandwidth",
        unit="s",
        value=_communication_latency,
        summary=metric.Summary.MEAN,
        limits=(0.0, math.inf),
        missing=(*_NO_COMMUNICATION, _NO_COST),
    ),
    _communication(
        "communication_bandwidth",
        "Fitted bandwidth",
        "bandwidth of the latency fit × 2(n−1)/n",
        unit="bytes/s",
        value=link_bandwidth,
        summary=metric.Summary.GEOMETRIC,
        missing=(*_NO_BUS_BANDWIDTH, _no_bandwidth, _NO_COST),
        part_of="bus_bandwidth",
    ),
    _communication(
        "overlap",
        "Overlap",
        "1 − (exposed communication − jitter) / communication-only time; comparable within one framework",
        value=overlap,
        summary=metric.Summary.MEAN,
        limits=(-math.inf, 1.0),
        only_if_all="communication_seconds",
        missing=(
            _no_overlap,
            nothing_to_communicate,
            computation.trained_alone,
            computation.divided_model,
            metric.not_measured_by_program,
            "communication alone was not measured",
        ),
        diagnose=doubtful_overlap,
    ),
    _communication(
        "bus_bandwidth",
        "Bus bandwidth",
        "bytes / communication-only time × 2(n−1)/n; all-reduce only",
        unit="bytes/s",
        value=bus_bandwidth,
        summary=metric.Summary.GEOMETRIC,
        missing=(*_NO_BUS_BANDWIDTH, "the bytes of its all-reduce are not recorded"),
    ),
)
