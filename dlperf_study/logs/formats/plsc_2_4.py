"""PLSC 2.4 (2023): face recognition and vision transformers."""

from dlperf_study.logs.format import (
    JOB_RATE,
    LOSS,
    RANK_READER,
    RANK_STEP,
    VALIDATION,
    Fact,
    Field,
    Format,
    Line,
    Merge,
    integer,
    number,
)
from dlperf_study.logs.formats._paddle import TRAIN_BATCH

_NUMBERS = (Field(LOSS, " loss"), Field(RANK_STEP, "batch_cost"), Field(JOB_RATE, "ips"))
#: Before or after the time of the step, depending on the version.
_READER = rf"(?=(?:.*?\breader_cost: {number('reader_seconds')})?+)"

FORMAT = Format(
    name="plsc_2_4",
    title="PLSC 2.4",
    program="PaddlePaddle/PLSC 2.4, plsc-train",
    lines=(
        Line(
            ("[Iter: ",),
            rf"plsc INFO: \[Train\]\[Epoch {integer('epoch')}/\d+\]\s*\[Iter: {integer('step')}/\d+\]{_READER}",
            _NUMBERS,
            (RANK_READER,),
        ),
        Line(
            ("[Iter: ",),
            rf"plsc INFO: \[Eval\]\[Epoch {integer('epoch')}\]\s*\[Iter: {integer('step')}/\d+\]{_READER}",
            _NUMBERS,
            (RANK_READER,),
            window=VALIDATION,
        ),
    ),
    rates=("throughput", "step_seconds"),
    merge=Merge.COPIES,
    steps="batches of the epoch, from 1",
    traps=("ips is that of the whole job, unlike PaddleClas, whose line looks the same",),
    facts=(Fact("world_size", r"world_size\s*:\s*(\d+)"), Fact("batch_per_device", TRAIN_BATCH)),
    dlperf_steps=(50, 150),
)
