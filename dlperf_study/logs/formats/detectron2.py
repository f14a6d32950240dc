"""Detectron2: its console, and its metrics.json."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.documents import JSON_ROW
from dlperf_study.logs.format import (
    JOB_STEP,
    LOSS,
    Field,
    Format,
    JsonLine,
    JsonRecord,
    Line,
    Merge,
    Metric,
    MetricScope,
    integer,
)

_MEAN = Metric("mean_step_seconds", "s", MetricScope.JOB, cumulative=True)


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of 20 iterations; a row of an evaluation has no loss."""
    if "total_loss" not in row:
        return None
    values = {LOSS.name: float(row["total_loss"])}
    if "time" in row:
        values[JOB_STEP.name] = float(row["time"])
    return JsonRecord(values, step=int(row["iteration"]))


FORMAT = Format(
    name="detectron2",
    title="Detectron2",
    program="facebookresearch/detectron2, utils/events.py",
    lines=(
        Line(
            ("  iter: ",),
            rf"eta: [^a-z]*(?:days?[^a-z]*)?\biter: {integer('step')}\b",
            (Field(LOSS, "total_loss"), Field(_MEAN, " time", r":\s*")),
        ),
        JsonLine((JSON_ROW,), _record, metrics=(LOSS, JOB_STEP)),
    ),
    rates=("step_seconds", "mean_step_seconds"),
    merge=Merge.ONE,
    steps="iterations since the start, from 0",
    traps=(
        "time on the console is the mean since the start, in metrics.json the median of the last 20 iterations",
        "IMS_PER_BATCH is the global batch of all devices; only rank 0 prints",
    ),
)
