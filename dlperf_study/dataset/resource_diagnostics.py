"""Diagnostics about the devices of a run, from the telemetry of its nodes: who else used them, and what slowed them."""

from collections.abc import Iterator, Sequence
from itertools import chain

import pandas as pd

from dlperf_study.analysis.resources import (
    POWER_CAP,
    SET_CLOCKS,
    clock_limits,
    foreign_processes,
    limits_text,
    training_windows,
)
from dlperf_study.diagnostic import Diagnostic, Severity
from dlperf_study.evidence.run import Run
from dlperf_study.evidence.telemetry import GpuFacts, GpuSample

#: A GPU that is busier before a run is diagnosed; and a power limit that is lower than this share of the default.
BUSY_SHARE, LOWERED_LIMIT = 0.05, 0.99
#: A GPU that is busier than this share of the time should reach this share of its highest clock.
MOSTLY_BUSY, LOW_CLOCK = 0.5, 0.8
#: By how much the clocks of the runs of a configuration may differ, as a share of the slowest.
CLOCK_SPREAD = 0.03


def _gpus_before(run: Run) -> Iterator[tuple[GpuFacts, GpuSample]]:
    """Yield what each GPU of the run is, and its state before anything was started."""
    for node in run.telemetry:
        yield from zip(node.facts["gpus"], node.before["gpus"], strict=True)


def used_before(run: Run) -> Iterator[Diagnostic]:
    """Other processes were on a GPU, or kept it busy, before the run."""
    for gpu, state in _gpus_before(run):
        if pids := state.get("process_ids"):
            message = f"before the run {_other_processes(pids)} used {gpu['uuid']}"
            yield Diagnostic("foreign_processes", f"{message}: {', '.join(map(str, pids))}")
        if state.get("utilisation", 0.0) > BUSY_SHARE:
            share = f"{100 * state['utilisation']:.0f} %"
            yield Diagnostic("gpu_utilisation", f"before the run {gpu['uuid']} was busy for {share} of the time")


def _other_processes(pids: Sequence[int]) -> str:
    return "1 other process" if len(pids) == 1 else f"{len(pids)} other processes"


def lowered_power_limit(run: Run) -> Iterator[Diagnostic]:
    """Somebody has given a GPU less power than its maker does."""
    for gpu, _ in _gpus_before(run):
        limit, default = gpu.get("power_limit_watts"), gpu.get("default_power_limit_watts")
        if limit is not None and default is not None and limit < LOWERED_LIMIT * default:
            message = f"the power of {gpu['uuid']} is limited to {limit:.0f} W, and its default is {default:.0f} W"
            yield Diagnostic("mean_power", f"{message} (nvidia-smi -pl)")


def foreign_processes_during(run: Run) -> Iterator[Diagnostic]:
    """Processes that are not of the run used its GPUs in the training window."""
    foreign = sorted(chain.from_iterable(filter(None, map(foreign_processes, training_windows(run)))))
    if foreign:
        message = f"{_other_processes(foreign)} used its GPUs in the training window"
        yield Diagnostic("foreign_processes", f"{message}: {', '.join(map(str, foreign))}")


def limited_clocks(run: Run) -> Iterator[Diagnostic]:
    """Power or temperature kept the clock of a GPU lower; a power cap alone is what many GPUs are made for."""
    for window in training_windows(run):
        for uuid, samples in window.of_gpus():
            limits = clock_limits(samples) or {}
            if limits_list := limits_text(limits):
                severity = Severity.NOTE if set(limits) == {"", POWER_CAP} else Severity.WARNING
                yield Diagnostic(
                    "clock_limited_share",
                    f"the clock of {uuid} was limited in the training window: {limits_list}",
                    severity,
                )
            if any(sample.get("clock_limits", 0) & SET_CLOCKS for sample in samples):
                message = (
                    f"the clock of {uuid} is set by somebody (nvidia-smi -ac or -lgc), and may be below its highest"
                )
                yield Diagnostic("sm_clock", message, Severity.NOTE)


def low_clocks(run: Run) -> Iterator[Diagnostic]:
    """A busy GPU computed far below its highest clock, and it reports no limit that would explain it."""
    for window in training_windows(run):
        for facts, (uuid, samples) in zip(window.telemetry.facts["gpus"], window.of_gpus(), strict=True):
            highest = facts.get("largest_sm_clock_mhz", 0)
            clocks = [each["sm_clock_mhz"] for each in samples if _is_busy(each) and not each.get("clock_limits", 0)]
            if clocks and max(clocks) < LOW_CLOCK * highest:
                message = f"the clock of {uuid} was at most {max(clocks)} MHz of {highest} while it was busy"
                yield Diagnostic("sm_clock", f"{message}, and it reports no limit: nvidia-smi -q -d CLOCK")


def _is_busy(state: GpuSample) -> bool:
    return "sm_clock_mhz" in state and state.get("utilisation", 0.0) > MOSTLY_BUSY


def unsampled_gpus(run: Run) -> Iterator[Diagnostic]:
    """The GPUs of a run could not be sampled, and why."""
    obstacles = dict.fromkeys(node.facts["obstacles"].get("gpus") for node in run.telemetry)
    if reasons := list(filter(None, obstacles)):
        yield Diagnostic("telemetry", f"its GPUs were not sampled: {'; '.join(reasons)}", Severity.NOTE)


def varying_clocks(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """The GPUs had other clocks in some repetitions of a configuration than in others."""
    for identity, clocks in completed.groupby("identity")["sm_clock"]:
        lowest, highest = clocks.min(), clocks.max()
        if highest > (1 + CLOCK_SPREAD) * lowest:
            message = f"the SM clock of its runs is between {lowest:.0f} and {highest:.0f} MHz"
            share = f"more than {100 * CLOCK_SPREAD:.0f} % apart"
            yield Diagnostic("sm_clock", f"{message}, {share}: they were not measured alike", identity=str(identity))


OF_EVERY_RUN = (used_before, lowered_power_limit, unsampled_gpus)
OF_COMPLETED_RUN = (foreign_processes_during, limited_clocks, low_clocks)
