"""Scaling-loss breakdown: the time that each cause adds to the ideal step.

The ideal step is the baseline's, for as much work per device. Causes are differences of parts: the mean computation of
ranks, the excess of the slowest rank, jitter, other exposed communication, the data-loading stall, and late updates. If
parts can't be separated, they are one cause, without the pipeline bubble and the data-loading stall.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dlperf_study.metrics.communication import MIN_JITTER_SECONDS
from dlperf_study.metrics.comparison import Samples, collect_samples
from dlperf_study.metrics.statistics import Bounded, Estimate, Interval, Sample

STEP, TOGETHER, INPUT, BUBBLE, JITTER = "step", "together", "input", "bubble", "jitter"
#: The causes in the order of a waterfall, with what pages call them.
CAUSES = {
    "computation": "Scaling of computation",
    "imbalance": "Load imbalance",
    JITTER: "Synchronisation jitter",
    "communication": "Exposed communication",
    TOGETHER: "Unattributed",
    INPUT: "Data-loading stall",
    BUBBLE: "Pipeline bubble",
    "drain": "Late updates",
}
#: A breakdown whose step differs from the throughput by more than this share is not shown.
MAX_DEVIATION = 0.10
_OF_WHOLE = ("computation", "imbalance", JITTER, "communication", INPUT, "drain")
#: The causes that are left out where neither step has them.
_IF_ANY = (JITTER, BUBBLE)
#: What may be separate in other steps, the most first; the rest is together.
_OF_OTHERS: tuple[tuple[str, ...], ...] = ((INPUT, BUBBLE), (BUBBLE,), (INPUT,), ())


@dataclass(frozen=True)
class Waterfall:
    """Ideal step, causes and measured step of a configuration; seconds.

    Means add up: ideal + causes = measured. Intervals are of differences within common rounds.
    """

    ideal: Estimate
    causes: Mapping[str, Estimate]
    measured: Estimate

    @property
    def has_intervals(self) -> bool:
        """Whether the runs of some cause tell how sure it is."""
        return any(cause.error is not None for cause in self.causes.values())

    @property
    def has_several_causes(self) -> bool:
        """Whether some cause is separate from the rest."""
        return len(self.causes) > 1


@dataclass(frozen=True)
class StepSamples:
    """Step times of completed runs and their parts, by configuration.

    ``levels``: the same step divided into ever fewer parts, as fewer are known of some runs; each level has the step
    and its parts by name.
    """

    levels: tuple[Mapping[str, Samples], ...]

    @classmethod
    def from_runs(
        cls, runs: pd.DataFrame, rounds: pd.Series | None, bubble_seconds: pd.Series, looks: int = 1
    ) -> "StepSamples":
        """Return the samples of completed runs.

        ``rounds``: see ``collect_samples``. ``bubble_seconds``: of each run, by its index; 0 without a pipeline,
        missing if unknown. ``looks``: see ``Estimate``.
        """
        levels = [_parts_of_whole(runs)]
        measured = {INPUT: runs["input_seconds"], BUBBLE: bubble_seconds}
        for causes in _OF_OTHERS:
            levels.append(_parts_of_step(runs["step_seconds"], {name: measured[name] for name in causes}))
        samples = []
        for parts in levels:
            by_name = {}
            for name, seconds in parts.items():
                by_name[name] = collect_samples(seconds, runs["configuration_id"], rounds, looks)
            samples.append(by_name)
        return cls(tuple(samples))

    def waterfall(self, configuration_id: str, baseline: str, work: float) -> Waterfall | None:
        """Return a configuration's waterfall; None without both steps.

        With the most causes that are known of both. ``work``: the work per device and step relative to the baseline.
        """
        common = [parts for parts in self.levels if configuration_id in parts[STEP] and baseline in parts[STEP]]
        if not common:
            return None
        parts = common[0]
        causes = {}
        for cause in filter(parts.__contains__, CAUSES):
            sample, of_baseline = parts[cause][configuration_id], parts[cause][baseline]
            if cause not in _IF_ANY or sample.values.any() or of_baseline.values.any():
                causes[cause] = sample.minus(_scaled(of_baseline, work))
        measured, ideal = parts[STEP][configuration_id], _scaled(parts[STEP][baseline], work)
        # Of the rounds that both have, as the differences are.
        return Waterfall(_common(ideal, measured), causes, _common(measured, ideal))


def _parts_of_whole(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return complete parts of a step, which add up."""
    measured = runs.dropna(subset=["broken_down_step_seconds", "compute_seconds", "load_balance"])
    mean_computation = measured["compute_seconds"] * measured["load_balance"]
    # What is 0 stays in the exposed communication: jitter that is small, or where ranks wait inside their computation.
    jitter, waiting = measured["jitter_seconds"].fillna(0.0), measured["input_seconds"].fillna(0.0)
    jitter = jitter.mask(jitter.groupby(measured["configuration_id"]).transform("mean") < MIN_JITTER_SECONDS, 0.0)
    drain = (measured["drain_seconds"] / measured["steps_measured"].astype(float)).fillna(0.0)
    imbalance = measured["compute_seconds"] - mean_computation
    step = measured["broken_down_step_seconds"]
    exposed = step - measured["compute_seconds"] - waiting - jitter - drain
    parts = (mean_computation, imbalance, jitter, exposed, waiting, drain)
    return {STEP: step, **dict(zip(_OF_WHOLE, parts, strict=True))}


def _parts_of_step(step: pd.Series, measured: Mapping[str, pd.Series]) -> dict[str, pd.Series]:
    """Return a step, its measured parts, and the rest."""
    parts = pd.DataFrame({STEP: step, **measured}).astype(float).dropna()
    together = parts[STEP] - parts[list(measured)].sum(axis="columns")
    return {STEP: parts[STEP], TOGETHER: together, **dict(parts[list(measured)].items())}


def contradicts(seconds: float, by_throughput: Bounded) -> bool:
    """Return whether a breakdown contradicts the throughput of all runs."""
    expected, low, high = by_throughput
    if low is not None and high is not None and not low <= seconds <= high:
        return True
    return abs(seconds / expected - 1) > MAX_DEVIATION


def _scaled(sample: Sample, factor: float) -> Sample:
    """Return the runs with their seconds for other work."""
    return replace(sample, values=sample.values * factor)


def _common(sample: Sample, compared: Sample) -> Estimate:
    """Return the mean over common rounds, if there are enough."""
    if sample.rounds is None or compared.rounds is None:
        return sample.estimate
    # A run in no round has none in common: NaN is not equal to NaN.
    is_common = np.isin(sample.rounds, compared.rounds)
    if is_common.sum() < len(sample.values) and len(sample.within_rounds(compared)) >= 3:
        return replace(sample, values=sample.values[is_common], rounds=sample.rounds[is_common]).estimate
    return sample.estimate


def exposed_of_kinds(exposed: Interval | None, alone: Mapping[str, Interval]) -> dict[str, Interval]:
    """Return bounds of each kind's exposed seconds, by name.

    From the 95 % intervals, at most its time ``alone``, and at least what the others can't explain of ``exposed``.
    Without ``exposed`` from nothing to all of it. Empty if the step waits longer than all of them take.
    """
    bounds = {}
    exposed = exposed or Interval(0.0, math.inf)
    most_of_all = sum(interval.high for interval in alone.values())
    for name, seconds in alone.items():
        least = max(0.0, exposed.low - (most_of_all - seconds.high))
        most = max(0.0, min(exposed.high, seconds.high))
        if most < least:
            return {}
        bounds[name] = Interval(least, most)
    return bounds
