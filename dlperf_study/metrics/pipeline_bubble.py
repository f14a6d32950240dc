"""The bubble of a pipeline: the part of a step that its devices wait, from the step times of several micro-batches.

With stages that take equally long, a step of m micro-batches on p devices takes (m + p − 1) t, where t is the time of
one micro-batch on one device. So t is the slope of the step over m, where all micro-batches have one size, and what a
step takes besides m t is the bubble. No profiler is needed. Formula: Narayanan et al., "Efficient large-scale language
model training on GPU clusters using Megatron-LM" (SC'21), section 2.2.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.metrics.metric import COMMUNICATION, C, Gap, Metric, Source
from dlperf_study.metrics.statistics import MINIMUM_RUNS, Estimate, Interval, interval_columns
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Entry

#: A slope needs so many numbers of micro-batches: with two, nothing says whether the steps are on a line.
LEAST_COUNTS = 3
#: What a line has: its slope, and where it begins.
_COEFFICIENTS = 2


@dataclass(frozen=True)
class Bubble:
    """The share of a step: ``rest`` estimates the logarithm of what is no bubble, m t / step."""

    rest: Estimate

    @property
    def share(self) -> float:
        """The part of the step that does not grow with the number of micro-batches; 0 where chance puts it below."""
        return max(0.0, 1 - self.rest.factor)

    def columns(self, has_interval: bool = True) -> dict[str, float]:
        """Return the share and the bounds of its interval, as columns of a configuration."""
        interval = _complement(self.rest.factor_interval()) if has_interval else None
        return {"bubble_share": self.share, **interval_columns("bubble_share", interval)}


def _complement(interval: Interval | None) -> Interval | None:
    """Return the interval of what is left of a whole, of which at least nothing is."""
    return Interval(max(0.0, 1 - interval.high), max(0.0, 1 - interval.low)) if interval else None


def even_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the share of a step in which a device waits, where all stages take equally long: (p−1)/(v m+p−1)."""
    return (stages - 1) / (chunks * micro_batches + stages - 1)


def bubbles(seconds: Mapping[int, Floats]) -> dict[int, Bubble]:
    """Return the bubble for each number of micro-batches, from the seconds of a step of each run.

    Empty with fewer than three numbers of micro-batches, and where steps do not grow with them. A run is one value.
    Least squares with errors in proportion to the step, as those of a busy machine are. Slope and step are of the same
    runs: the error of their quotient is that of the sum of its parts in each run (delta method).
    """
    if len(seconds) < LEAST_COUNTS:
        return {}
    counts = np.repeat(list(seconds), [values.size for values in seconds.values()]).astype(float)
    means = np.repeat([values.mean() for values in seconds.values()], [values.size for values in seconds.values()])
    relative = np.concatenate(list(seconds.values())) / means
    design = np.column_stack([np.ones_like(counts), counts]) / means[:, None]
    weights = np.linalg.pinv(design)[1]
    slope, freedom = float(weights @ relative), counts.size - _COEFFICIENTS
    if slope <= 0:
        return {}
    residuals = relative - design @ (np.linalg.pinv(design) @ relative)
    deviation = math.sqrt(float(residuals @ residuals) / freedom)
    shares = {}
    for count, values in seconds.items():
        parts = weights / slope - (counts == count) / values.size
        error = deviation * float(np.linalg.norm(parts))
        shares[count] = Bubble(Estimate(math.log(count * slope / values.mean()), error, freedom))
    return shares


def bubble_columns(
    entries: Iterable[Entry], completed: pd.DataFrame, rounds: pd.Series | None
) -> dict[str, dict[str, float]]:
    """Return the columns of the bubble by identity; ``completed``: the completed runs of the study.

    Only of configurations with a pipeline of which the study has three numbers of micro-batches of one size, and
    differing in nothing else. ``rounds``: of each run, None if runs are independent. The slope compares configurations:
    without common rounds there is no interval, as what a machine did between blocks of runs is in it.
    """
    measured = completed.dropna(subset=["step_seconds"]).groupby("identity")["step_seconds"]
    steps = {str(identity): runs.to_numpy(float) for identity, runs in measured}
    columns: dict[str, dict[str, float]] = {}
    for identities in _pipelines(entries, steps):
        of_counts = bubbles({count: steps[identity] for count, identity in sorted(identities.items())})
        has_interval = rounds is None or _common_rounds(completed, rounds, identities.values()) >= MINIMUM_RUNS
        columns |= {identities[count]: bubble.columns(has_interval) for count, bubble in of_counts.items()}
    return columns


def _common_rounds(completed: pd.DataFrame, rounds: pd.Series, identities: Collection[str]) -> int:
    """Return how many rounds have a run of each of these configurations."""
    of_configurations = [set(rounds[completed["identity"] == identity].dropna()) for identity in identities]
    return len(set.intersection(*of_configurations))


def bubble_seconds(entries: Iterable[Entry], completed: pd.DataFrame, rounds: pd.Series | None) -> pd.Series:
    """Return the seconds of the bubble in a step of each completed run; 0 without a pipeline, missing where unknown.

    The line through the steps of each round is that of all runs: least squares with the same weights. So the mean over
    rounds in which all numbers of micro-batches were measured is the bubble of the means. ``rounds``: of each run, by
    the index of ``completed``; runs in no round have no bubble of their own.
    """
    has_pipeline = completed["pipeline_parallel"].astype("Float64").fillna(1) > 1
    seconds = pd.Series(0.0, completed.index).mask(has_pipeline.astype(bool))
    if rounds is None:
        return seconds
    known_steps = completed["step_seconds"].notna() & rounds.notna()
    steps = pd.DataFrame({"identity": completed["identity"], "round": rounds, "step": completed["step_seconds"]})
    steps = steps[known_steps].astype({"step": float})
    for identities in _pipelines(entries, set(steps["identity"])):
        counts = {identity: count for count, identity in sorted(identities.items())}
        of_pipeline = steps[steps["identity"].isin(counts)]
        slope_of_round = _slopes_of_rounds(of_pipeline, counts)
        busy = of_pipeline["identity"].map(counts) * of_pipeline["round"].map(slope_of_round)
        seconds.update(of_pipeline["step"] - busy)
    return seconds


def _slopes_of_rounds(steps: pd.DataFrame, counts: Mapping[str, int]) -> dict[Any, float]:
    """Return the seconds of a micro-batch in each round that has all numbers of micro-batches.

    ``steps``: a row a run, with ``identity``, ``round`` and ``step`` in seconds. ``counts``: micro-batches by identity.
    Empty with fewer than 3 counts, and where steps do not grow with them.
    """
    of_rounds = (
        steps.pivot_table(index="round", columns="identity", values="step").reindex(columns=list(counts)).dropna()
    )
    slopes = _slopes(np.array(list(counts.values()), dtype=float), of_rounds.to_numpy())
    is_growing = slopes.size and slopes.mean() > 0
    return dict(zip(of_rounds.index, slopes.tolist(), strict=True)) if is_growing else {}


def _slopes(counts: Floats, steps: Floats) -> Floats:
    """Return the seconds of a micro-batch in each round; ``steps`` [rounds, counts]. None with fewer than 3 counts."""
    if counts.size < LEAST_COUNTS or not steps.size:
        return np.empty(0)
    means = steps.mean(axis=0)
    weights = np.linalg.pinv(np.column_stack([np.ones_like(counts), counts]) / means[:, None])[1]
    slopes: Floats = steps / means @ weights
    return slopes


def _pipelines(entries: Iterable[Entry], measured: Container[str]) -> list[dict[int, str]]:
    """Return, of configurations that differ in nothing else, each by its number of micro-batches."""
    pipelines: defaultdict[Hashable, dict[int, str]] = defaultdict(dict)
    for entry in entries:
        configuration = entry.configuration
        if configuration.pipeline_parallel > 1 and configuration.identity in measured:
            pipelines[_but_micro_batches(configuration)][configuration.micro_batches] = configuration.identity
    return list(pipelines.values())


def _but_micro_batches(configuration: Configuration) -> Hashable:
    """Return what configurations have in common that differ in their number of micro-batches alone."""
    values = configuration.identifying_values()
    values = {name: value for name, value in values.items() if name not in ("micro_batches", "batch_per_device")}
    size = configuration.batch_per_device / configuration.micro_batches
    return size, *sorted(values.items())


def _even_share_of(entry: Entry) -> float | None:
    configuration = entry.configuration
    stages = configuration.pipeline_parallel
    if stages == 1:
        return None
    return even_share(stages, configuration.micro_batches, configuration.virtual_stages)


def _no_pipeline(gap: Gap) -> str:
    return "" if _has_pipeline(gap.row) else "its devices are no stages of a pipeline"


def _has_pipeline(row: Any) -> bool:
    return bool(row.pipeline_parallel > 1) if pd.notna(row.pipeline_parallel) else False


METRICS = (
    Metric(
        "bubble_share",
        "Pipeline bubble",
        "part of a step that does not grow with the number of micro-batches: 1 − micro-batches × slope / step, with "
        "the slope of the step over the number of micro-batches of one size; exchange of gradients and update are in "
        "it; an interval that begins with 0 can't tell it from none",
        C,
        interval="of the regression",
        missing=(
            _no_pipeline,
            "the study has fewer than 3 numbers of micro-batches of this size with completed runs, or steps do not "
            "grow with them",
        ),
        pages=(COMMUNICATION,),
    ),
    Metric(
        "even_bubble_share",
        "Bubble of even stages",
        "(p−1)/(v m+p−1) with p devices of a pipeline, v stages on each and m micro-batches: how long a device waits "
        "in a step if all stages take equally long and nothing else takes time",
        C,
        value=_even_share_of,
        source=Source.ENTRY,
        missing=(_no_pipeline,),
        pages=(COMMUNICATION,),
    ),
)
BUBBLE_COLUMNS = tuple(metric.name for metric in METRICS)
