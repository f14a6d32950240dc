"""For how long the steps of configurations wait for gradients or for their batch, as shares of the step."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.analysis.statistics import Estimate
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.sentences.names import Names, percent_text
from dlperf_study.study.job import Outcome


@dataclass(frozen=True)
class Wait:
    """For how long the steps of a configuration wait: the column of the seconds, and their share of the step."""

    row: Any
    name: str
    column: str
    share: Estimate


def waits(dataset: Dataset, column: str) -> list[Wait]:
    """Return the waits with an interval, of ``exposed_seconds`` or ``input_seconds``, of what can wait at all."""
    names, shares, waiting = Names(dataset), _shares(context.completed_runs(dataset), column), []
    for row in context.measured(dataset).itertuples():
        share = shares.get(row.identity)
        if share is not None and share.error is not None:
            waiting.append(Wait(row, names.of_configuration(row), column, share))
    return waiting


def waiting_for_gradients(dataset: Dataset, row: Any) -> str:
    """Return which share of a step is exposed communication; empty where that can't be told from nothing."""
    runs = dataset.runs_of(row.identity)
    share = _shares(runs[runs["outcome"] == Outcome.COMPLETED], "exposed_seconds").get(row.identity)
    interval = share.interval() if share is not None else None
    if share is None or interval is None or interval.low <= 0:
        return ""
    return f"{percent_text(share)} of a step is waiting for gradients"


def _shares(completed: pd.DataFrame, column: str) -> dict[str, Estimate]:
    """Return the mean over runs of the seconds of a column / those of the step; none of what can't wait."""
    runs = completed.dropna(subset=[column, "step_seconds"])
    values = (runs[column] / runs["step_seconds"]).to_numpy(float)
    shares = {}
    for identity, positions in runs.groupby("identity").indices.items():
        if values[positions].any():
            shares[str(identity)] = Estimate.of(values[positions])
    return shares
