"""Event files of TensorBoard, whichever program wrote them."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.event_files import EVENT_ROW
from dlperf_study.logs.format import (
    JOB_RATE,
    JOB_STEP,
    LOSS,
    UNITLESS_RATE,
    Format,
    JsonLine,
    JsonRecord,
    Merge,
)
from dlperf_study.logs.scalar_tags import meaning


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of an event whose tags are known; None if it has none."""
    values = {}
    for tag, value in row["values"].items():
        if known := meaning(tag):
            metric, factor = known
            values[metric] = value * factor
    return JsonRecord(values, step=row["step"], time_seconds=row["wall_time"]) if values else None


FORMAT = Format(
    name="tensorboard",
    title="TensorBoard",
    program="tensorflow/tensorboard, event files (events.out.tfevents.*) of any program",
    lines=(JsonLine((EVENT_ROW,), _record, metrics=(JOB_RATE, JOB_STEP, UNITLESS_RATE, LOSS)),),
    rates=(JOB_RATE.name, JOB_STEP.name, UNITLESS_RATE.name),
    merge=Merge.ONE,
    steps="what the program gives as its step",
    traps=(
        "programs choose the names of scalars: samples_per_sec is read as that of the whole job, step_time as seconds, "
        "throughput as a rate of no stated unit; tags of a device, rank or gpu, of eval, val or test are left out",
        "a program that still writes, or was killed, may leave a record that is cut",
    ),
)
