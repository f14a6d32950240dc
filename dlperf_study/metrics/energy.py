"""Energy and power of a run, from telemetry in the training window."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.core.wording import counted
from dlperf_study.metrics import metric, throughput
from dlperf_study.records.lines import TRAINING, GpuFacts, GpuSample, NodeSample
from dlperf_study.records.rank_log import NANO
from dlperf_study.records.run import Run
from dlperf_study.records.telemetry import NodeTelemetry

#: Fewer samples of a window say too little of its power.
MINIMUM_SAMPLES = 3
GPU_BOARDS, CPU_PACKAGES = "GPU boards", "CPU packages"
#: A power limit that is lower than this share of the default is diagnosed.
LOWERED_LIMIT = 0.99


@dataclass(frozen=True)
class NodeWindow:
    """Samples of one node in the training window, in order."""

    telemetry: NodeTelemetry
    samples: tuple[NodeSample, ...]

    @property
    def seconds(self) -> float:
        """The time from the first sample to the last."""
        return (self.samples[-1]["clock_ns"] - self.samples[0]["clock_ns"]) * NANO

    def group_by_gpu(self) -> Iterator[tuple[str, list[GpuSample]]]:
        """Yield the UUID and the samples of each GPU."""
        for index, facts in enumerate(self.telemetry.facts["gpus"]):
            yield facts["uuid"], [sample["gpus"][index] for sample in self.samples]


@metric.once_per_run
def training_windows(run: Run) -> tuple[NodeWindow, ...]:
    """Return samples by node; none if a node has no telemetry."""
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


def fewest_samples(run: Run) -> int | None:
    """Return the fewest samples of any node; None without telemetry."""
    return min((len(window.samples) for window in training_windows(run)), default=None)


@metric.once_per_run
def mean_power(run: Run) -> float | None:
    """Return the watts of all devices of a run, or None."""
    if energy_obstacle(run):
        return None
    return sum(map(node_watts, training_windows(run)))


def energy_per_sample(run: Run) -> float | None:
    """Return the joules of a sample: power / throughput."""
    watts = mean_power(run)
    samples = throughput.throughput(run)
    if watts is not None and samples:
        return watts / samples
    return None


def sampling_seconds(run: Run) -> float | None:
    """Return the mean time that a sample took, over all nodes."""
    samples = list(chain.from_iterable(node.samples for node in run.telemetry))
    if not samples:
        return None
    return fmean(sample["sampling_seconds"] for sample in samples)


def energy_coverage(run: Run) -> str:
    """Return what the energy counters of a run cover."""
    if run.facts["cluster"]["device"] == "gpu":
        return GPU_BOARDS
    return CPU_PACKAGES


def energy_obstacle(run: Run) -> str:
    """Return why a run has no energy; else empty."""
    windows = training_windows(run)
    if not windows:
        return "the run records have no telemetry of the training window"
    for window in windows:
        if reason := _counter_obstacle(run, window):
            return reason
    fewest = fewest_samples(run) or 0
    if fewest < MINIMUM_SAMPLES:
        return f"its training window has {counted(fewest, 'sample')}, and power needs {MINIMUM_SAMPLES}"
    return ""


def _counter_obstacle(run: Run, window: NodeWindow) -> str:
    """Return why a node has no energy counter of its devices."""
    obstacles = window.telemetry.facts["obstacles"]
    if energy_coverage(run) == CPU_PACKAGES:
        missing = [sample for sample in window.samples if not sample["cpu_energy_joules"]]
        return obstacles.get("cpu_energy", "a sample has no energy of the processors" if missing else "")
    if not window.telemetry.facts["gpus"]:
        return obstacles.get("gpus", "nvidia-smi lists none of its GPUs")
    for uuid, samples in window.group_by_gpu():
        if not all("energy_joules" in sample for sample in samples):
            reason = window.telemetry.not_reported.get(uuid, {}).get("energy_joules", "unknown reason")
            return f"{uuid} does not report its energy: {reason}"
    return ""


def node_watts(window: NodeWindow) -> float:
    """Return the mean power of a node's devices, by their counters."""
    if window.telemetry.facts["gpus"]:
        joules = sum(samples[-1]["energy_joules"] - samples[0]["energy_joules"] for _, samples in window.group_by_gpu())
    else:
        first, last = window.samples[0]["cpu_energy_joules"], window.samples[-1]["cpu_energy_joules"]
        joules = sum(last.values()) - sum(first.values())
    return joules / window.seconds


def gpus_before(run: Run) -> Iterator[tuple[GpuFacts, GpuSample]]:
    """Yield each GPU and its state before the run."""
    for node in run.telemetry:
        yield from zip(node.facts["gpus"], node.before["gpus"], strict=True)


def lowered_power_limit(run: Run) -> Iterator[Diagnostic]:
    """Somebody has given a GPU less power than its maker does."""
    for gpu, _ in gpus_before(run):
        limit, default = gpu.get("power_limit_watts"), gpu.get("default_power_limit_watts")
        if limit is not None and default is not None and limit < LOWERED_LIMIT * default:
            message = f"the power of {gpu['uuid']} is limited to {limit:.0f} W, and its default is {default:.0f} W"
            yield Diagnostic("mean_power", f"{message} (nvidia-smi -pl)")


def unsampled_gpus(run: Run) -> Iterator[Diagnostic]:
    """The GPUs of a run could not be sampled, and why."""
    obstacles = dict.fromkeys(node.facts["obstacles"].get("gpus") for node in run.telemetry)
    if reasons := list(filter(None, obstacles)):
        yield Diagnostic("telemetry", f"its GPUs were not sampled: {'; '.join(reasons)}", Severity.NOTE)


def _no_energy(gap: metric.Gap) -> str:
    return "; ".join(dict.fromkeys(gap.runs["energy_obstacle"].dropna()))


METRICS = (
    metric.Metric(
        "energy_per_sample",
        "Energy per sample",
        "mean power / throughput; GPU boards, or CPU packages of the nodes, without host, fans and power supplies",
        unit="J/sample",
        value=energy_per_sample,
        summary=metric.Summary.POSITIVE_MEAN,
        missing=(_no_energy, metric.only_in_tokens),
    ),
    metric.Metric(
        "mean_power",
        "Power",
        "energy counted by all devices / time between first and last sample of the window",
        unit="W",
        value=mean_power,
        summary=metric.Summary.POSITIVE_MEAN,
        missing=(_no_energy,),
        pages=metric.DEVICE_PAGES,
        diagnose_any=lowered_power_limit,
    ),
    metric.text(
        "energy_of",
        "Energy of",
        "GPU boards or CPU packages",
        metric.R,
        value=lambda run: None if mean_power(run) is None else energy_coverage(run),
    ),
    metric.text(
        "energy_obstacle",
        "Why no energy",
        "why energy is missing",
        metric.R,
        value=lambda run: energy_obstacle(run) or None,
    ),
    metric.whole_number(
        "telemetry_samples",
        "Samples",
        "samples in the measured window, node with the fewest",
        metric.R,
        value=fewest_samples,
        pages=metric.DEVICE_PAGES,
        subject="telemetry",
        diagnose_any=unsampled_gpus,
    ),
    metric.Metric(
        "sampling_seconds",
        "Sampling",
        "node agent's mean time per sample",
        metric.R,
        unit="s",
        value=sampling_seconds,
    ),
)
