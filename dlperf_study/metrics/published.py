"""Metrics of published numbers, and task stages as ElasticDL prints them.

A task is a fixed number of samples of one worker, so a stage takes as many of our steps as these samples are batches.
"""

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd

from dlperf_study.metrics.metric import Dtype, Metric, P, text

_string = partial(text, tables=P)

#: Where a number is printed. A cell of a table may hold several; each has a row of its own.
CELL = (
    _string("cell", "Cell", "unique key: source/table/row/column, with #k for the k-th number in a cell"),
    _string("source", "Source", "published source"),
    _string("table", "Table", "table of the source"),
    _string("row", "Row", "row label as printed"),
    _string("column", "Column", "column label as printed"),
    _string("printed", "Printed", "number as printed; - for a dash"),
    _string("before", "Text before", "cell text before the number"),
    _string("after", "Text after", "cell text after the number"),
)

NUMBER = (
    _string("metric", "Metric", "kind of number"),
    Metric("value", "Value", "number in the unit; percentages as fractions, a : b as a / b", P),
    _string("unit", "Unit", "unit of the value"),
    Metric(
        "resolution",
        "Resolution",
        "one unit of the last printed digit",
        P,
    ),
    _string("scope", "Scope", "job (all devices) or rank (one worker)"),
    _string("role", "Role", "result, or working (run lists, profiles, sums, repeats)"),
    _string("estimator", "Estimator", "median, mean, run, value or not stated"),
    Metric("runs", "Runs", "published repetitions; 0 if none is printed", P, dtype=Dtype.INTEGER),
    _string("runs_of", "Run of", "cell that summarises this run"),
    _string("baseline", "Baseline cell", "cell of the ratio's baseline"),
    _string("series", "Line", "numbers that differ only in devices"),
)

WHO = (
    _string("program", "Program", "benchmark program"),
    _string("extra", "Besides", "further distinction, in the source's words"),
    _string("mode", "Mode", "communication mode, in the source's words"),
    _string("images", "Images", "synthetic, or read from files"),
    _string("scaling", "Scaling", "weak or strong"),
    Metric(
        "samples_per_task",
        "Samples per task",
        "samples that an ElasticDL worker fetches at once",
        P,
        unit="samples",
        dtype=Dtype.INTEGER,
    ),
    _string("instance", "Instance", "cloud instance type"),
    _string("hardware", "Hardware", "hardware as the source describes it"),
    _string("software", "Software", "versions as the source describes them"),
    _string("inferred", "Inferred", "columns that the source does not state"),
)

#: Values of our parameters that mean the same as the source's own words.
COUNTERPARTS = (
    _string("matching_framework", "Matching framework", "framework of the matching measurement"),
    _string("matching_memory_format", "Matching memory format", "memory format of the matching measurement"),
    _string("matching_strategy", "Matching strategy", "strategy of the matching measurement"),
    _string(
        "matching_activation_checkpointing",
        "Matching activation checkpointing",
        "activation checkpointing of the matching measurement",
    ),
    *(
        Metric(f"matching_{name}", f"Matching {words}", f"{words} of the matching measurement", P, dtype=Dtype.INTEGER)
        for name, words in (
            ("nodes", "nodes"),
            ("devices_per_node", "devices per node"),
            ("threads_per_device", "threads per device"),
            ("tensor_parallel", "tensor parallel"),
            ("pipeline_parallel", "pipeline parallel"),
            ("zero_stage", "ZeRO stage"),
            ("micro_batches", "micro-batches"),
        )
    ),
)

METRICS = (*CELL, *NUMBER, *WHO, *COUNTERPARTS)


_IN_PASSES = "not measured apart: in forward + backward"
_NOT_COPIED = "no such stage: gradients are communicated from where they are"


@dataclass(frozen=True)
class Stage:
    """A stage under its published name.

    Attributes:
        metric: its name among the published metrics.
        label: what its source calls it.
        column: our column of its seconds per step; empty if not measured.
        without: our column of the seconds to subtract; empty if none.
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
        "exposed_communication_seconds",
        "exposed communication, by which the communication makes the steps longer; what is hidden is not in it",
    ),
    Stage("tensor_numpy_seconds", "tensor.numpy() time", "", _NOT_COPIED),
    Stage("apply_gradients_seconds", "apply_gradients", "", _IN_PASSES),
    Stage(
        "forward_backward_seconds",
        "forward + backward",
        "compute_seconds",
        "the compute-only steps, which apply their gradients too",
    ),
)


def stage_rows(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per published task with stages."""
    metrics = list(map(attrgetter("metric"), STAGES))
    printed = cells[cells["metric"].isin(metrics) & cells["samples_per_task"].notna()]
    rows = []
    for _, task in printed.groupby(["source", "table", "row"], sort=False):
        if len(task) > 1:
            rows.append(task.iloc[0].to_dict() | dict(zip(task["metric"], task["printed"], strict=True)))
    return pd.DataFrame(rows, columns=[*cells.columns, *metrics])


def stage_obstacle(stage: Stage, row: Any) -> str:
    """Return why our configurations have no such stage; else empty."""
    if stage.metric == "get_model_seconds" and row.parameter_servers:
        return "not measured apart: in the communication with the servers"
    if not stage.column:
        return stage.meaning
    if stage.metric == "report_gradient_seconds" and row.world_size == 1 and not row.parameter_servers:
        return "one worker alone communicates nothing"
    return ""


def select_same_network(task: Any, configurations: pd.DataFrame) -> pd.DataFrame:
    """Return our measured configurations with a task's network, images and device."""
    is_same = configurations["runs_completed"] > 0
    for name in ("model", "image_size", "classes", "device"):
        if not pd.isna(getattr(task, name)):
            is_same &= (configurations[name] == getattr(task, name)).fillna(False).astype(bool)
    return configurations[is_same]
