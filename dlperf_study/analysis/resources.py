"""What a run used besides time, from the telemetry of its nodes, cut to the training window of their ranks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from statistics import fmean
from typing import Any, Literal, TypeVar

import numpy as np

from dlperf_study.evidence.rank_log_writer import TRAINING
from dlperf_study.evidence.run import Run
from dlperf_study.evidence.telemetry import GpuSample, NodeTelemetry, Sample
from dlperf_study.wording import counted

#: Fewer samples of a window say too little of its power.
MINIMUM_SAMPLES = 3
NANO = 1e-9
GPU_BOARDS, CPU_PACKAGES = "GPU boards", "CPU packages"
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

NumberOfGpu = Literal["utilisation", "sm_clock_mhz", "memory_clock_mhz"]
Values = dict[str, float | int | str | None]
Item = TypeVar("Item")


@dataclass(frozen=True)
class NodeWindow:
    """The samples of one node while its ranks were in their training window, in order of time."""

    telemetry: NodeTelemetry
    samples: tuple[Sample, ...]

    @property
    def seconds(self) -> float:
        """The time from the first sample to the last."""
        return (self.samples[-1]["clock_ns"] - self.samples[0]["clock_ns"]) * NANO

    def of_gpus(self) -> Iterator[tuple[str, list[GpuSample]]]:
        """Yield the UUID and the samples of each GPU."""
        for index, facts in enumerate(self.telemetry.facts["gpus"]):
            yield facts["uuid"], [sample["gpus"][index] for sample in self.samples]


#: The row of a run and each of its diagnostics call it.
@lru_cache(maxsize=1)
def training_windows(run: Run) -> tuple[NodeWindow, ...]:
    """Return the samples of the training window, by node; none if a node with ranks has no telemetry."""
    telemetry = {node.node: node for node in run.telemetry}
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[float]] = {}
    for log in run.ranks:
        window, node = log.windows[TRAINING], log.facts["node"]
        if window.begin_ns is None or node not in telemetry:
            return ()
        begins.setdefault(node, []).append(window.begin_ns)
        ends.setdefault(node, []).append(window.begin_ns + window.seconds / NANO)
    windows = []
    for node in begins:
        samples = telemetry[node].between(min(begins[node]), int(max(ends[node])))
        windows.append(NodeWindow(telemetry[node], samples))
    return tuple(windows)


def resources_of(run: Run, throughput: float) -> Values:
    """Return the columns on what a completed run used; ``throughput`` is in samples/s."""
    windows = training_windows(run)
    samples = min((len(window.samples) for window in windows), default=None)
    obstacle = energy_obstacle(run)
    watts = None if obstacle else sum(map(node_watts, windows))
    sampling_seconds = [sample["sampling_seconds"] for node in run.telemetry for sample in node.samples]
    columns: Values = {
        "energy_per_sample": None if watts is None else watts / throughput,
        "mean_power": watts,
        "energy_of": None if watts is None else energy_of(run),
        "energy_obstacle": obstacle or None,
        "telemetry_samples": samples,
        "sampling_seconds": fmean(sampling_seconds) if sampling_seconds else None,
    }
    return columns | _state_columns(windows if samples else ())


def energy_of(run: Run) -> str:
    """Return what the energy counters of a run cover."""
    return GPU_BOARDS if run.facts["cluster"]["device"] == "gpu" else CPU_PACKAGES


def energy_obstacle(run: Run) -> str:
    """Return why the energy of a completed run is not reported; empty if it is."""
    windows = training_windows(run)
    if not windows:
        return "its evidence has no telemetry of the training window"
    for window in windows:
        if reason := _counter_obstacle(run, window):
            return reason
    fewest = min(len(window.samples) for window in windows)
    if fewest < MINIMUM_SAMPLES:
        return f"its training window has {counted(fewest, 'sample')}, and power needs {MINIMUM_SAMPLES}"
    return ""


def _counter_obstacle(run: Run, window: NodeWindow) -> str:
    """Return why a node has no energy counter of what it trains on."""
    obstacles = window.telemetry.facts["obstacles"]
    if energy_of(run) == CPU_PACKAGES:
        missing = [sample for sample in window.samples if not sample["cpu_energy_joules"]]
        return obstacles.get("cpu_energy", "a sample has no energy of the processors" if missing else "")
    if not window.telemetry.facts["gpus"]:
        return obstacles.get("gpus", "nvidia-smi lists none of its GPUs")
    for uuid, samples in window.of_gpus():
        if not all("energy_joules" in sample for sample in samples):
            reason = window.telemetry.not_reported.get(uuid, {}).get("energy_joules", "no reason is known")
            return f"{uuid} does not report its energy: {reason}"
    return ""


def node_watts(window: NodeWindow) -> float:
    """Return the mean power of what a node trains on, by its counters, from the first to the last sample."""
    if window.telemetry.facts["gpus"]:
        joules = sum(samples[-1]["energy_joules"] - samples[0]["energy_joules"] for _, samples in window.of_gpus())
    else:
        first, last = window.samples[0]["cpu_energy_joules"], window.samples[-1]["cpu_energy_joules"]
        joules = sum(last.values()) - sum(first.values())
    return joules / window.seconds


def _state_columns(windows: Iterable[NodeWindow]) -> Values:
    """Return memory, clocks, temperature and limits; all are None without windows."""
    windows = list(windows)
    host_bytes = [sample["memory_used_bytes"] for window in windows for sample in window.samples]
    gpus = [samples for window in windows for _, samples in window.of_gpus()]
    largest_limits = max(if_complete(map(clock_limits, gpus)), key=_any_limit, default=None)
    foreign = if_complete(map(foreign_processes, windows))
    return {
        "peak_host_bytes": max(host_bytes, default=None),
        "peak_device_bytes": _largest(gpus, "memory_used_bytes"),
        "gpu_temperature": _largest(gpus, "temperature_celsius"),
        "gpu_utilisation": _mean(gpus, "utilisation"),
        "sm_clock": _mean(gpus, "sm_clock_mhz"),
        "memory_clock": _mean(gpus, "memory_clock_mhz"),
        "clock_limited_share": _any_limit(largest_limits) if largest_limits else None,
        "clock_limits": limits_text(largest_limits) or None if largest_limits else None,
        "foreign_processes": sum(map(len, foreign)) if gpus and foreign else None,
    }


def _largest(gpus: Iterable[list[GpuSample]], name: Literal["memory_used_bytes", "temperature_celsius"]) -> int | None:
    """Return the largest value of all GPUs; None where one of them does not report it."""
    return max(_of_all_samples(gpus, name), default=None)


def _mean(gpus: Iterable[list[GpuSample]], name: NumberOfGpu) -> float | None:
    """Return the mean over samples and GPUs; None where one of them does not report it."""
    values = _of_all_samples(gpus, name)
    return fmean(values) if values else None


def _of_all_samples(gpus: Iterable[list[GpuSample]], name: str) -> list[Any]:
    """Return what all samples of all GPUs report; nothing if one does not report it."""
    return if_complete(sample.get(name) for sample in chain.from_iterable(gpus))


def if_complete(values: Iterable[Item | None]) -> list[Item]:
    """Return values, or none of them where one is missing."""
    complete: list[Item] = []
    for value in values:
        if value is None:
            return []
        complete.append(value)
    return complete


#: Of the samples of a GPU, the share in which each limit kept its clock lower; under "" that of any.
Limits = Mapping[str, float]


def clock_limits(samples: list[GpuSample]) -> Limits | None:
    """Return the shares of the samples in which each limit of power or temperature held; None if not reported."""
    reasons = np.array(if_complete(sample.get("clock_limits") for sample in samples), dtype=np.int64)
    if not reasons.size:
        return None
    shares = {"": float(np.mean(reasons & sum(LIMITS) != 0))}
    for bit, name in LIMITS.items():
        if share := float(np.mean(reasons & bit != 0)):
            shares[name] = share
    return shares


def _any_limit(limits: Limits) -> float:
    return limits.get("", 0.0)


def limits_text(limits: Limits) -> str:
    """Return what limited a clock, with the share of the samples: ``power cap 40 %``."""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in limits.items() if name)


def foreign_processes(window: NodeWindow) -> set[int] | None:
    """Return the processes on the GPUs of a node in the window that are not of the run; None if not known.

    What was there before the run is foreign. Of what came later that is known only where the driver's ids are those of
    the guard: where at least one process of the run was found among them.
    """
    foreign: set[int] = set()
    before = window.telemetry.before["gpus"]
    for index, (_, samples) in enumerate(window.of_gpus()):
        if not all("process_ids" in sample for sample in samples):
            return None
        listed = {pid for sample in samples for pid in sample["process_ids"]}
        of_run = {pid for sample in samples for pid in sample.get("run_process_ids", [])}
        were_there = listed & set(before[index].get("process_ids", []))
        if listed - were_there and not of_run:
            return were_there or None
        foreign |= (listed - of_run) | were_there
    return foreign
