"""Memory, clocks, temperature and other processes of devices, from telemetry."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from statistics import fmean
from typing import Any

import numpy as np

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.metrics import metric
from dlperf_study.metrics.energy import NodeWindow, fewest_samples, gpus_before, training_windows
from dlperf_study.records.lines import GpuSample
from dlperf_study.records.run import Run

#: NVML's reasons why a clock is not higher that are limits of power or temperature, by bit.
POWER_CAP = "power cap"
LIMITS = {
    0x4: POWER_CAP,
    0x8: "hardware slowdown",
    0x20: "temperature, by software",
    0x40: "temperature, by hardware",
    0x80: "power brake",
}
#: The bit of clocks that somebody has set, as by ``nvidia-smi -ac``.
SET_CLOCKS = 0x2
#: A GPU that is busier before a run is diagnosed.
BUSY_SHARE = 0.05
#: A GPU that is busier than this share of the time should reach this share of its highest clock.
MOSTLY_BUSY, LOW_CLOCK = 0.5, 0.8


@metric.once_per_run
def sampled_windows(run: Run) -> tuple[NodeWindow, ...]:
    """Return the training window of each node; none without all samples."""
    if fewest_samples(run):
        return training_windows(run)
    return ()


@metric.once_per_run
def list_gpu_samples(run: Run) -> list[list[GpuSample]]:
    """Return the samples of the training window of each GPU."""
    return [samples for window in sampled_windows(run) for _, samples in window.group_by_gpu()]


def peak_host_bytes(run: Run) -> int | None:
    """Return the peak memory of a host in the training window."""
    samples = (sample["memory_used_bytes"] for window in sampled_windows(run) for sample in window.samples)
    return max(samples, default=None)


def _over_samples(name: str, summarise: Callable[[list[Any]], Any]) -> Callable[[Run], Any]:
    """Return the formula of a value over all samples of all GPUs; None if one has none."""

    def value(run: Run) -> Any:
        samples = chain.from_iterable(list_gpu_samples(run))
        values = metric.if_complete(sample.get(name) for sample in samples)
        return summarise(values) if values else None

    return value


#: Of the samples of a GPU, the share in which each limit kept its clock lower; under "" that of any.
Limits = Mapping[str, float]


def clock_limits(samples: list[GpuSample]) -> Limits | None:
    """Return the shares of samples with each limit, or None."""
    reasons = np.array(metric.if_complete(sample.get("clock_limits") for sample in samples), dtype=np.int64)
    if not reasons.size:
        return None
    shares = {"": float(np.mean(reasons & sum(LIMITS) != 0))}
    for bit, name in LIMITS.items():
        if share := float(np.mean(reasons & bit != 0)):
            shares[name] = share
    return shares


@metric.once_per_run
def largest_limits(run: Run) -> Limits | None:
    """Return the limits of the most limited GPU, or None."""
    return max(metric.if_complete(map(clock_limits, list_gpu_samples(run))), key=itemgetter(""), default=None)


def clock_limited_share(run: Run) -> float | None:
    """Return the share of samples with a limited clock."""
    limits = largest_limits(run)
    return limits[""] if limits else None


def limits_text(limits: Limits) -> str:
    """Return the limits of a clock with shares: ``power cap 40 %``."""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in limits.items() if name)


def other_processes(window: NodeWindow) -> set[int] | None:
    """Return the other processes on a node's GPUs, or None.

    Earlier processes are foreign. Later ones are known only if the driver's ids match the node agent's: at least one
    process of the run was found among them.
    """
    foreign: set[int] = set()
    before = window.telemetry.before["gpus"]
    for index, (_, samples) in enumerate(window.group_by_gpu()):
        if not all("process_ids" in sample for sample in samples):
            return None
        listed = set(chain.from_iterable(sample["process_ids"] for sample in samples))
        of_run = set(chain.from_iterable(sample.get("run_process_ids", []) for sample in samples))
        were_there = listed & set(before[index].get("process_ids", []))
        if listed - were_there and not of_run:
            return were_there or None
        foreign |= (listed - of_run) | were_there
    return foreign


def number_of_foreign_processes(run: Run) -> int | None:
    """Return the number of other processes on the GPUs, or None."""
    foreign = metric.if_complete(map(other_processes, sampled_windows(run)))
    if list_gpu_samples(run) and foreign:
        return sum(map(len, foreign))
    return None


def used_before(run: Run) -> Iterator[Diagnostic]:
    """Other processes were on a GPU before the run."""
    for gpu, state in gpus_before(run):
        if pids := state.get("process_ids"):
            message = f"before the run {_other_processes(pids)} used {gpu['uuid']}"
            yield Diagnostic("other_processes", f"{message}: {', '.join(map(str, pids))}")


def busy_before(run: Run) -> Iterator[Diagnostic]:
    """Something kept a GPU busy before the run."""
    for gpu, state in gpus_before(run):
        if state.get("utilisation", 0.0) > BUSY_SHARE:
            share = f"{100 * state['utilisation']:.0f} %"
            yield Diagnostic("gpu_utilisation", f"before the run {gpu['uuid']} was busy for {share} of the time")


def _other_processes(pids: Sequence[int]) -> str:
    if len(pids) == 1:
        return "1 other process"
    return f"{len(pids)} other processes"


def foreign_processes_during(run: Run) -> Iterator[Diagnostic]:
    """Other processes used the GPUs in the training window."""
    foreign = sorted(chain.from_iterable(filter(None, map(other_processes, training_windows(run)))))
    if foreign:
        message = f"{_other_processes(foreign)} used its GPUs in the training window"
        yield Diagnostic("other_processes", f"{message}: {', '.join(map(str, foreign))}")


def limited_clocks(run: Run) -> Iterator[Diagnostic]:
    """Power or temperature limited the clock of a GPU."""
    for window in training_windows(run):
        for uuid, samples in window.group_by_gpu():
            limits = clock_limits(samples) or {}
            if limits_list := limits_text(limits):
                severity = Severity.NOTE if set(limits) == {"", POWER_CAP} else Severity.WARNING
                yield Diagnostic(
                    "clock_limited_share",
                    f"the clock of {uuid} was limited in the training window: {limits_list}",
                    severity,
                )
            if any(sample.get("clock_limits", 0) & SET_CLOCKS for sample in samples):
                message = f"the clock of {uuid} is set by a user (nvidia-smi -ac or -lgc), and may be below its maximum"
                yield Diagnostic("sm_clock", message, Severity.NOTE)


def low_clocks(run: Run) -> Iterator[Diagnostic]:
    """A busy GPU ran far below its highest clock without a limit."""
    for window in training_windows(run):
        for facts, (uuid, samples) in zip(window.telemetry.facts["gpus"], window.group_by_gpu(), strict=True):
            highest = facts.get("largest_sm_clock_mhz", 0)
            clocks = []
            for sample in samples:
                is_busy = "sm_clock_mhz" in sample and sample.get("utilisation", 0.0) > MOSTLY_BUSY
                if is_busy and not sample.get("clock_limits", 0):
                    clocks.append(sample["sm_clock_mhz"])
            if clocks and max(clocks) < LOW_CLOCK * highest:
                message = f"the clock of {uuid} was at most {max(clocks)} MHz of {highest} while it was busy"
                yield Diagnostic("sm_clock", f"{message}, but no limit is reported: nvidia-smi -q -d CLOCK")


_NOT_REPORTED = "its GPUs do not report it, or were not sampled in the training window"
_of_gpus = partial(metric.Metric, missing=(_NOT_REPORTED,))

METRICS = (
    metric.whole_number(
        "peak_device_bytes",
        "Peak of the GPU",
        "sampled peak memory use of one GPU, all processes (NVML)",
        unit="bytes",
        value=_over_samples("memory_used_bytes", max),
        summary=metric.Summary.LARGEST,
        missing=("not every sample of its training window has it, or there is none",),
    ),
    metric.whole_number(
        "peak_host_bytes",
        "Peak of the host",
        "sampled peak memory use of one host, page cache excluded",
        unit="bytes",
        value=peak_host_bytes,
        summary=metric.Summary.LARGEST,
        missing=("not every node was sampled in its training window",),
    ),
    _of_gpus(
        "gpu_temperature",
        "Temperature",
        "maximum over GPUs and samples (NVML)",
        unit="°C",
        value=_over_samples("temperature_celsius", max),
        summary=metric.Summary.LARGEST,
        dtype=metric.Dtype.OPTIONAL_INTEGER,
    ),
    _of_gpus(
        "gpu_utilisation",
        "GPU busy",
        "share of time with a running kernel (NVML), mean over GPUs",
        value=_over_samples("utilisation", fmean),
        summary=metric.Summary.MEAN,
        limits=(0.0, 1.0),
        pages=metric.DEVICE_PAGES,
        diagnose_any=busy_before,
    ),
    _of_gpus(
        "sm_clock",
        "SM clock",
        "mean clock of the GPU cores",
        unit="MHz",
        value=_over_samples("sm_clock_mhz", fmean),
        summary=metric.Summary.POSITIVE_MEAN,
        pages=metric.DEVICE_PAGES,
        diagnose=low_clocks,
    ),
    _of_gpus(
        "memory_clock",
        "Memory clock",
        "mean clock of the GPU memory",
        unit="MHz",
        value=_over_samples("memory_clock_mhz", fmean),
        summary=metric.Summary.POSITIVE_MEAN,
    ),
    _of_gpus(
        "clock_limited_share",
        "Clock limited",
        "share of samples with a clock limited by power or temperature (NVML), most limited GPU",
        value=clock_limited_share,
        summary=metric.Summary.MEAN,
        limits=(0.0, 1.0),
        pages=metric.DEVICE_PAGES,
        diagnose=limited_clocks,
    ),
    metric.text(
        "clock_limits",
        "Clock limits",
        "clock limits with their share of samples",
        metric.R,
        value=lambda run: limits_text(largest_limits(run) or {}) or None,
    ),
    metric.whole_number(
        "other_processes",
        "Other processes",
        "processes outside the run on its GPUs (NVML); missing if process IDs are ambiguous",
        metric.R,
        value=number_of_foreign_processes,
        pages=metric.DEVICE_PAGES,
        diagnose=foreign_processes_during,
        diagnose_any=used_before,
    ),
)
