"""MMEngine and the OpenMMLab programs that use it, and MMCV before it."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.documents import JSON_ROW
from dlperf_study.logs.format import (
    JOB_STEP,
    LOSS,
    RANK_READER,
    Field,
    Format,
    JsonLine,
    JsonRecord,
    Line,
    Merge,
    integer,
)


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a row of scalars.json; a row of validation has no iteration."""
    if "iter" not in row:
        return None
    values = {LOSS.name: float(row["loss"]), JOB_STEP.name: float(row["time"])}
    return JsonRecord(values, int(row.get("epoch", -1)), int(row["iter"]))


_NUMBERS = (Field(JOB_STEP, " time", r":\s*"), Field(RANK_READER, "data_time"), Field(LOSS, " loss", r":\s*"))

FORMAT = Format(
    name="mmengine",
    title="MMEngine",
    program="open-mmlab/mmengine, runner/log_processor.py, and open-mmlab/mmcv, hooks/logger/text.py",
    lines=(
        Line(
            ("Epoch(train)",),
            rf"INFO - (?:Exp name: \S+ )?Epoch\(train\)\s+\[\s*{integer('epoch')}\]\[\s*{integer('step')}/\d+\]",
            _NUMBERS,
        ),
        Line(("Iter(train)",), rf"Iter\(train\)\s+\[\s*{integer('step')}/\d+\]", _NUMBERS),
        Line(
            ("INFO - Epoch [",),
            rf"INFO - Epoch \[{integer('epoch')}\]\[{integer('step')}/\d+\]\s+lr: [^,]*, (?:eta: .*?, )?(?=time: )",
            (Field(JOB_STEP, "time", r":\s*"), Field(RANK_READER, "data_time"), Field(LOSS, " loss", r":\s*")),
        ),
        Line(("INFO - Iter [",), rf"INFO - Iter \[{integer('step')}/\d+\]", _NUMBERS),
        JsonLine((JSON_ROW,), _record, metrics=(LOSS, JOB_STEP)),
    ),
    rates=("step_seconds",),
    merge=Merge.ONE,
    steps="iterations of the epoch, or since the start, from 1",
    traps=(
        "time is the mean of the last iterations, with loading data; the batch size in the configuration is per device",
        "the number of iterations in an epoch is that of one process",
    ),
)
