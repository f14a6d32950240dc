"""Runs that a tracker of experiments kept, whichever program recorded them."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs import printed
from dlperf_study.logs.event_files import EVENT_ROW
from dlperf_study.logs.format import Format, JsonLine, JsonRecord, Merge
from dlperf_study.logs.mlflow_database import METRIC_ROW
from dlperf_study.logs.scalar_rows import THROUGHPUT_NAMES, THROUGHPUTS, tag_meaning
from dlperf_study.logs.wandb_files import HISTORY_ROW

_TRAP = (
    "samples_per_sec and tokens_per_sec are the job's, step_time is in seconds, throughput has no unit; "
    "tags of devices, ranks and evaluation are ignored"
)


def _scalar_format(name: str, title: str, program: str, marker: str, *traps: str) -> Format:
    """Return the format of a tracker; ``marker`` precedes its rows."""
    return Format(
        name=name,
        title=title,
        program=program,
        lines=(JsonLine((marker,), _record, metrics=(*THROUGHPUTS, printed.LOSS)),),
        throughput_metrics=THROUGHPUT_NAMES,
        merge=Merge.ONE,
        steps="what the program gives as its step",
        counts_updates=False,
        traps=(_TRAP, *traps),
    )


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a row with known tags, or None."""
    values = {}
    for tag, value in row["values"].items():
        if metric_and_factor := tag_meaning(tag):
            metric, factor = metric_and_factor
            values[metric] = value * factor
    if values:
        return JsonRecord(values, step=row["step"], time_seconds=row["wall_time"])
    return None


TENSORBOARD = _scalar_format(
    "tensorboard",
    "TensorBoard",
    "tensorflow/tensorboard, event files (events.out.tfevents.*) of any program",
    EVENT_ROW,
    "reads events.out.tfevents.*; a killed program may leave a truncated record",
)

WANDB = _scalar_format(
    "wandb",
    "Weights & Biases",
    "wandb/wandb, the file run-*.wandb of a run of any program, offline or synchronized",
    HISTORY_ROW,
    "reads run-*.wandb; each rank that calls wandb.init has its own run",
)

MLFLOW = _scalar_format(
    "mlflow",
    "MLflow",
    "mlflow/mlflow, its database mlflow.db, or the folder mlruns/EXPERIMENT/RUN of a run of any program",
    METRIC_ROW,
    "reads mlflow.db or mlruns/; values without a step are at step 0",
)

FORMATS = (TENSORBOARD, WANDB, MLFLOW)
