"""fairseq."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.format import (
    JOB_RATE,
    JOB_TOKENS,
    LOSS,
    Fact,
    Format,
    JsonLine,
    JsonRecord,
    Line,
    Merge,
    integer,
    number,
)


def _record(row: Mapping[str, Any]) -> JsonRecord:
    """Return the numbers of an interval, which are strings; the first has no rate yet."""
    values = {LOSS.name: float(row["loss"])}
    if float(row["wps"]) > 0:
        values[JOB_RATE.name] = float(row["wps"]) * float(row["bsz"]) / float(row["wpb"])
    return JsonRecord(values, int(row["epoch"]), int(row["num_updates"]))


FORMAT = Format(
    name="fairseq",
    title="fairseq",
    program="facebookresearch/fairseq, logging/progress_bar.py",
    lines=(
        JsonLine(("| train_inner | ",), _record, metrics=(JOB_RATE, LOSS)),
        Line(
            ("wps=",),
            rf"\btrain_inner \| epoch \d+:.*?\bloss={number('loss')},.*?\bwps={number('token_throughput')}, "
            rf".*?\bnum_updates={integer('step')}",
            captured=(LOSS, JOB_TOKENS),
        ),
    ),
    rates=("throughput", "token_throughput"),
    merge=Merge.ONE,
    steps="updates since the start; a line is of those since the line before",
    facts=(Fact("world_size", r"training on (\d+) devices"),),
    traps=(
        "wps counts tokens, or frames, of all workers since the last line; samples are wps × bsz / wpb",
        "the first line has no rate; versions of 2019 print a mean since the start; ups has two decimals",
    ),
)
