"""From the ideal step to the measured one: how much each cause adds, in parts that add up.

The ideal step is that of the baseline, for as much work of a device. What a configuration adds is the difference of
each part of a step, in the runs that measured its parts: the mean computation of its ranks, by how much the slowest
rank's is longer, the waiting for jitter, what of the exchange is exposed besides, the input wait, and the drain.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from dlperf_study.metrics.comparison import Samples, samples_of
from dlperf_study.metrics.statistics import Estimate, Sample

#: The causes in the order of a waterfall, with what pages call them.
CAUSES = {
    "computation": "Scaling of computation",
    "imbalance": "Load imbalance",
    "jitter": "Waiting for jitter",
    "exchange": "Exposed exchange",
    "input": "Input wait",
    "drain": "Drain",
}
STEP = "step"


@dataclass(frozen=True)
class Waterfall:
    """The ideal step of a configuration, what each cause adds to it, and the measured step; seconds.

    Means add up: ideal + causes = measured. Intervals are of differences within common rounds.
    """

    ideal: Estimate
    causes: Mapping[str, Estimate]
    measured: Estimate


def part_samples(runs: pd.DataFrame, rounds: pd.Series | None) -> dict[str, Samples]:
    """Return the seconds of a step of completed runs by cause, and of the whole step, by identity.

    Only of runs in which all parts were measured, so that their parts add up. ``rounds``: see ``samples_of``.
    """
    measured = runs.dropna(subset=["broken_down_step_seconds", "computation_seconds", "load_balance"])
    seconds = _parts(measured)
    return {name: samples_of(values, runs["identity"], rounds) for name, values in seconds.items()}


def _parts(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the seconds of the parts of a step, which add up to it."""
    mean_computation = runs["computation_seconds"] * runs["load_balance"]
    # What is not known is 0, and so stays in the exposed exchange: jitter where ranks wait inside their computation.
    jitter, waiting = runs["jitter_seconds"].fillna(0.0), runs["input_seconds"].fillna(0.0)
    drain = (runs["drain_seconds"] / runs["steps_measured"].astype(float)).fillna(0.0)
    imbalance = runs["computation_seconds"] - mean_computation
    step = runs["broken_down_step_seconds"]
    exchange = step - runs["computation_seconds"] - waiting - jitter - drain
    parts = (mean_computation, imbalance, jitter, exchange, waiting, drain)
    return {STEP: step, **dict(zip(CAUSES, parts, strict=True))}


def waterfall(parts: Mapping[str, Samples], identity: str, baseline: str, work: float) -> Waterfall | None:
    """Return the waterfall of a configuration; None where its parts or those of its baseline were not measured.

    ``parts``: from ``part_samples``. ``work``: how many times the work of a device of the baseline a device has in a
    step.
    """
    if identity not in parts[STEP] or baseline not in parts[STEP]:
        return None
    causes = {}
    for cause in CAUSES:
        causes[cause] = parts[cause][identity].minus(_scaled(parts[cause][baseline], work))
    measured, ideal = parts[STEP][identity], _scaled(parts[STEP][baseline], work)
    # Of the rounds that both have, as the differences are.
    return Waterfall(_common(ideal, measured), causes, _common(measured, ideal))


def _scaled(sample: Sample, factor: float) -> Sample:
    """Return the runs with their seconds for other work."""
    return Sample(sample.values * factor, sample.rounds)


def _common(sample: Sample, other: Sample) -> Estimate:
    """Return the mean of the runs that differences are made of: those of common rounds, where enough are."""
    if sample.rounds is None or other.rounds is None:
        return sample.estimate
    is_common = pd.Series(sample.rounds).isin(other.rounds).to_numpy()
    if is_common.sum() < len(sample.values) and len(sample.within_rounds(other)) >= 3:
        return Sample(sample.values[is_common], sample.rounds[is_common]).estimate
    return sample.estimate
