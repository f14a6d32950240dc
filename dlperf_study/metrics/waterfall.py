"""The scaling-loss breakdown: what each cause adds to the ideal step, in parts that add up.

The ideal step is that of the baseline, for as much work of a device. What a configuration adds is the difference of
each part of a step: the mean computation of its ranks, by how much the slowest rank's is longer, the waiting for
jitter, what of the exchange is exposed besides, the input wait, and the drain. Where no step can be done without its
exchange, and where logs print nothing but rates, these can't be separated: then they are one cause, without those that
can, which are the bubble of a pipeline and the input wait.
"""

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
    JITTER: "Waiting for jitter",
    "exchange": "Exposed exchange",
    TOGETHER: "Unattributed",
    INPUT: "Input wait",
    BUBBLE: "Pipeline bubble",
    "drain": "Late updates",
}
#: A breakdown whose step differs from the throughput by more than this share is not shown.
MAX_DEPARTURE = 0.10
#: The causes of a step of which all parts were measured.
_OF_WHOLE = ("computation", "imbalance", JITTER, "exchange", INPUT, "drain")
#: The causes that are left out where neither step has them.
_IF_ANY = (JITTER, BUBBLE)
#: What may be separate in other steps, the most first; the rest is together.
_OF_OTHERS: tuple[tuple[str, ...], ...] = ((INPUT, BUBBLE), (BUBBLE,), (INPUT,), ())


@dataclass(frozen=True)
class Waterfall:
    """The ideal step of a configuration, what each cause adds to it, and the measured step; seconds.

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
    """The seconds of a step of completed runs and of its parts, by configuration.

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
        missing where it is not known. ``looks``: see ``Estimate``.
        """
        levels = [_parts_of_whole(runs)]
        measured = {INPUT: runs["input_seconds"], BUBBLE: bubble_seconds}
        for causes in _OF_OTHERS:
            levels.append(_parts_of_step(runs["step_seconds"], {name: measured[name] for name in causes}))
        samples = []
        for parts in levels:
            by_name = {
                name: collect_samples(seconds, runs["identity"], rounds, looks) for name, seconds in parts.items()
            }
            samples.append(by_name)
        return cls(tuple(samples))

    def waterfall(self, identity: str, baseline: str, work: float) -> Waterfall | None:
        """Return the waterfall of a configuration; None where its step or that of its baseline is not known.

        With the most causes that are known of both. ``work``: how many times the work of a device of the baseline a
        device has in a step.
        """
        common = [parts for parts in self.levels if identity in parts[STEP] and baseline in parts[STEP]]
        if not common:
            return None
        parts = common[0]
        causes = {}
        for cause in filter(parts.__contains__, CAUSES):
            sample, of_baseline = parts[cause][identity], parts[cause][baseline]
            if cause not in _IF_ANY or sample.values.any() or of_baseline.values.any():
                causes[cause] = sample.minus(_scaled(of_baseline, work))
        measured, ideal = parts[STEP][identity], _scaled(parts[STEP][baseline], work)
        # Of the rounds that both have, as the differences are.
        return Waterfall(_common(ideal, measured), causes, _common(measured, ideal))


def _parts_of_whole(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the seconds of the parts of a step, which add up to it, of the runs in which all were measured."""
    measured = runs.dropna(subset=["broken_down_step_seconds", "computation_seconds", "load_balance"])
    mean_computation = measured["computation_seconds"] * measured["load_balance"]
    # What is 0 stays in the exposed exchange: jitter that is small, or where ranks wait inside their computation.
    jitter, waiting = measured["jitter_seconds"].fillna(0.0), measured["input_seconds"].fillna(0.0)
    jitter = jitter.mask(jitter.groupby(measured["identity"]).transform("mean") < MIN_JITTER_SECONDS, 0.0)
    drain = (measured["drain_seconds"] / measured["steps_measured"].astype(float)).fillna(0.0)
    imbalance = measured["computation_seconds"] - mean_computation
    step = measured["broken_down_step_seconds"]
    exchange = step - measured["computation_seconds"] - waiting - jitter - drain
    parts = (mean_computation, imbalance, jitter, exchange, waiting, drain)
    return {STEP: step, **dict(zip(_OF_WHOLE, parts, strict=True))}


def _parts_of_step(step: pd.Series, measured: Mapping[str, pd.Series]) -> dict[str, pd.Series]:
    """Return the seconds of a step, of the parts of it that were measured, and of the rest together.

    Of the runs in which all of these are known.
    """
    parts = pd.DataFrame({STEP: step, **measured}).astype(float).dropna()
    together = parts[STEP] - parts[list(measured)].sum(axis="columns")
    return {STEP: parts[STEP], TOGETHER: together, **{name: parts[name] for name in measured}}


def contradicts(seconds: float, by_throughput: Bounded) -> bool:
    """Return whether a step of the breakdown contradicts the throughput of all runs.

    The step is outside the interval or more than 10 % away. ``by_throughput``: seconds of a step, with their interval.
    """
    expected, low, high = by_throughput
    if low is not None and high is not None and not low <= seconds <= high:
        return True
    return abs(seconds / expected - 1) > MAX_DEPARTURE


def _scaled(sample: Sample, factor: float) -> Sample:
    """Return the runs with their seconds for other work."""
    return replace(sample, values=sample.values * factor)


def _common(sample: Sample, compared: Sample) -> Estimate:
    """Return the mean of the runs that differences are made of: those of common rounds, where enough are."""
    if sample.rounds is None or compared.rounds is None:
        return sample.estimate
    # A run in no round has none in common: NaN is not equal to NaN.
    is_common = np.isin(sample.rounds, compared.rounds)
    if is_common.sum() < len(sample.values) and len(sample.within_rounds(compared)) >= 3:
        return replace(sample, values=sample.values[is_common], rounds=sample.rounds[is_common]).estimate
    return sample.estimate


def exposed_of_kinds(exposed: Interval | None, alone: Mapping[str, Interval]) -> dict[str, Interval]:
    """Return within which seconds each of several exchanges of a step is exposed, by its name.

    From the ends of their 95 % intervals, and as if none was exposed for longer than it takes ``alone``: of what is
    ``exposed``, at least what all others can't explain. Without ``exposed``, as no step can be done without the
    exchange, from nothing to all of it. Empty where the step waits for longer than all of them take.
    """
    bounds = {}
    most_of_all = sum(interval.high for interval in alone.values())
    for name, seconds in alone.items():
        most_of_rest = most_of_all - seconds.high
        least = max(0.0, exposed.low - most_of_rest) if exposed else 0.0
        most = max(0.0, min(exposed.high, seconds.high)) if exposed else seconds.high
        if most < least:
            return {}
        bounds[name] = Interval(least, most)
    return bounds
