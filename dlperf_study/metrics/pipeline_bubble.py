"""The pipeline bubble, from the step times of several micro-batch counts.

With equal stages, a step of m micro-batches on p devices takes (m + p − 1) t, where t is the time of one micro-batch on
one device. So t is the slope of the step over m, and the step without m t is the bubble. Formula: Narayanan et al.,
"Efficient large-scale language model training on GPU clusters using Megatron-LM" (SC'21), section 2.2.
"""

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.core.wording import counted
from dlperf_study.metrics.metric import COMMUNICATION, C, Metric, Source, list_names, reason_if
from dlperf_study.metrics.statistics import MINIMUM_RUNS, Estimate, interval_columns
from dlperf_study.study.plan import Entry

#: A slope needs so many numbers of micro-batches: with two, nothing says whether the steps are on a line.
LEAST_COUNTS = 3


def even_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the bubble share for equal stages: (p−1)/(v m+p−1)."""
    return (stages - 1) / (chunks * micro_batches + stages - 1)


@dataclass(frozen=True)
class Bubble:
    """Mean over rounds of the bubble share 1 − m × slope / step."""

    share: Estimate
    no_interval: str

    @property
    def columns(self) -> dict[str, float]:
        """The share and the bounds of its interval, within [0, 1]."""
        columns = {"bubble_share": self.share.mean, **interval_columns("bubble_share", self.share.share_interval())}
        return {name: float(np.clip(value, 0.0, 1.0)) for name, value in columns.items()}


@dataclass(frozen=True)
class Line:
    """Configurations that differ only in their number of micro-batches.

    ``counts``: their micro-batches by identity. ``steps`` [rounds, identities]: the seconds of a step, by round.
    """

    counts: pd.Series
    steps: pd.DataFrame

    @property
    def slopes(self) -> pd.Series:
        """The seconds of a micro-batch, by round; empty if not positive."""
        if self.steps.empty:
            return pd.Series(dtype=float)
        means = self.steps.mean().to_numpy()
        design = np.column_stack([np.ones_like(means), self.counts]) / means[:, None]
        slopes = self.steps / means @ np.linalg.pinv(design)[1]
        if slopes.mean() > 0:
            return slopes
        return slopes.iloc[:0]

    def shares(self, configuration_id: str) -> Floats:
        """Return the bubble share of a configuration, by round."""
        slopes = self.slopes
        shares: Floats = (
            1 - self.counts[configuration_id] * slopes / self.steps.loc[slopes.index, configuration_id]
        ).to_numpy()
        return shares


def bubbles(
    entries: Iterable[Entry], completed: pd.DataFrame, rounds: pd.Series | None, looks: int = 1
) -> dict[str, Bubble]:
    """Return the bubble of each pipeline configuration, by identity.

    Needs three numbers of micro-batches of one size. ``completed``: the completed runs. ``rounds``: of each run, None
    if runs are independent. Without a complete round, the line is that of the mean steps. ``looks``: see ``Estimate``.
    """
    bubbles = {}
    for line in _lines(entries, completed, rounds):
        common = len(line.steps)
        if not common:
            means = completed.groupby("configuration_id")["step_seconds"].mean()[line.counts.index]
            line = Line(line.counts, means.astype(float).to_frame().T)
        for configuration_id in line.counts.index:
            shares = line.shares(configuration_id)
            if shares.size:
                share = Estimate.from_values(shares, looks=looks)
                bubbles[configuration_id] = Bubble(share, _no_interval(share, common))
    return bubbles


def _no_interval(share: Estimate, common: int) -> str:
    """Return why a share has no interval; ``common``: complete rounds."""
    if share.error is not None:
        return ""
    if common < MINIMUM_RUNS:
        have = f"{counted(common, 'round')} {'has' if common == 1 else 'have'} a run of each number of micro-batches"
        return f"no CI: {have}, and a CI needs {MINIMUM_RUNS}"
    return "no CI: it is the same in all rounds"


def bubble_seconds(entries: Iterable[Entry], completed: pd.DataFrame, rounds: pd.Series | None) -> pd.Series:
    """Return the bubble of each completed run in seconds per step.

    0 without a pipeline, missing if unknown. ``rounds``: of each run, by the index of ``completed``. A run has a bubble
    if its round has a run of each number of micro-batches.
    """
    has_pipeline = completed["pipeline_parallel"].astype("Float64").fillna(1) > 1
    seconds = pd.Series(0.0, completed.index).mask(has_pipeline.astype(bool))
    for line in _lines(entries, completed, rounds):
        of_line = completed[completed["configuration_id"].isin(line.counts.index)]
        slope_of_round = rounds[of_line.index].map(line.slopes) if rounds is not None else np.nan
        seconds.update(
            of_line["step_seconds"].astype(float) - of_line["configuration_id"].map(line.counts) * slope_of_round
        )
    return seconds


def _lines(entries: Iterable[Entry], completed: pd.DataFrame, rounds: pd.Series | None) -> Iterator[Line]:
    """Yield pipelines with enough micro-batch counts, and their complete rounds."""
    measured = completed.dropna(subset=["step_seconds"])
    steps = pd.DataFrame(
        {"configuration_id": measured["configuration_id"], "step": measured["step_seconds"].astype(float)}
    )
    steps["round"] = np.nan if rounds is None else rounds[measured.index]
    for configuration_ids in _pipelines(entries, set(steps["configuration_id"])):
        if len(configuration_ids) < LEAST_COUNTS:
            continue
        counts = pd.Series({configuration_ids[count]: count for count in sorted(configuration_ids)})
        of_line = steps[steps["configuration_id"].isin(counts.index)]
        of_rounds = of_line.pivot_table(index="round", columns="configuration_id", values="step")
        yield Line(counts, of_rounds.reindex(columns=counts.index).dropna())


def _pipelines(entries: Iterable[Entry], measured: Container[str]) -> list[dict[int, str]]:
    """Return configurations by micro-batches, grouped by all else."""
    pipelines: defaultdict[Hashable, dict[int, str]] = defaultdict(dict)
    for entry in entries:
        configuration = entry.configuration
        if configuration.pipeline_parallel > 1 and configuration.configuration_id in measured:
            values = dict(configuration.identifying_values())
            for name in ("micro_batches", "batch_per_device"):
                values.pop(name, None)
            size = configuration.batch_per_device / configuration.micro_batches
            pipelines[size, *sorted(values.items())][configuration.micro_batches] = configuration.configuration_id
    return list(pipelines.values())


def _even_share(entry: Entry) -> float | None:
    configuration = entry.configuration
    stages = configuration.pipeline_parallel
    if stages == 1:
        return None
    return even_share(stages, configuration.micro_batches, configuration.virtual_stages)


_no_pipeline = reason_if(
    lambda gap: pd.isna(gap.row.pipeline_parallel) or gap.row.pipeline_parallel <= 1,
    "its devices are no stages of a pipeline",
)
METRICS = (
    Metric(
        "bubble_share",
        "Pipeline bubble",
        "1 − micro-batches × slope / step; slope: added step time per micro-batch of the same size; "
        "includes gradient communication and update",
        C,
        interval="of the mean over rounds",
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
        "(p−1)/(v m+p−1): idle share with p equal pipeline devices, v stages each, m micro-batches",
        C,
        value=_even_share,
        source=Source.ENTRY,
        missing=(_no_pipeline,),
        pages=(COMMUNICATION,),
    ),
)
BUBBLE_COLUMNS = list_names(METRICS)
