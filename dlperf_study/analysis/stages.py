"""The stages of a task as ElasticDL prints them, from our own windows.

A task is a fixed number of samples of one worker, so a stage of it takes as many of our steps as these samples are
batches. Our windows know a step, a step without exchange, and so what an exchange adds; they don't divide either.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

_IN_PASSES = "not measured apart: in forward + backward"
_NOT_COPIED = "no such stage: gradients are exchanged from where they are"


@dataclass(frozen=True)
class Stage:
    """A stage under its published name.

    Attributes:
        metric: its name among the published metrics.
        label: what its source calls it.
        column: our column that has the seconds of it in one step; empty if our windows don't measure it.
        without: our column of what is in that and not in the stage; empty if there is nothing.
        meaning: what our value is, or why there is none.

    """

    metric: str
    label: str
    column: str
    meaning: str
    without: str = ""


STAGES = (
    Stage("task_process_seconds", "task_process, total task time", "step_seconds", "the steps of a task"),
    Stage(
        "batch_process_seconds",
        "batch_process",
        "step_seconds",
        "the steps of a task without what they wait for their batches",
        without="input_seconds",
    ),
    Stage("get_model_seconds", "get_model", "", "no such stage: in an all-reduce nobody fetches the model"),
    Stage(
        "report_gradient_seconds",
        "report_gradient, allreduce time",
        "exposed_seconds",
        "exposed communication, by which the exchange makes the steps longer; what is hidden is not in it",
    ),
    Stage("tensor_numpy_seconds", "tensor.numpy() time", "", _NOT_COPIED),
    Stage("apply_gradients_seconds", "apply_gradients", "", _IN_PASSES),
    Stage(
        "forward_backward_seconds",
        "forward + backward",
        "computation_seconds",
        "the steps without exchange, which apply their gradients too",
    ),
)


def stage_rows(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per published task: the facts of its first number, and the printed text of each stage by metric.

    Tasks of which nothing but the whole is known are left out. ``cells`` has the columns of published numbers.
    """
    metrics = [stage.metric for stage in STAGES]
    printed = cells[cells["metric"].isin(metrics) & cells["samples_per_task"].notna()]
    rows = []
    for _, task in printed.groupby(["source", "table", "row"], sort=False):
        if len(task) > 1:
            rows.append(task.iloc[0].to_dict() | dict(zip(task["metric"], task["printed"], strict=True)))
    return pd.DataFrame(rows, columns=[*cells.columns, *metrics])


def why_not_measured(stage: Stage, row: Any) -> str:
    """Return why a row of our configurations has no value of a stage; empty if our windows measure it."""
    if stage.metric == "get_model_seconds" and row.servers:
        return "not measured apart: in the exchange with the servers"
    if not stage.column:
        return stage.meaning
    if stage.metric == "report_gradient_seconds" and row.world_size == 1 and not row.servers:
        return "one worker alone exchanges nothing"
    return ""


def of_same_network(task: Any, configurations: pd.DataFrame) -> pd.DataFrame:
    """Return our measured configurations of the network, the images and the kind of device of a published task."""
    is_same = configurations["runs_completed"] > 0
    for name in ("model", "image_size", "classes", "device"):
        if not pd.isna(getattr(task, name)):
            is_same &= (configurations[name] == getattr(task, name)).fillna(False).astype(bool)
    return configurations[is_same]
