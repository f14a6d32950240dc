"""PaddleDetection, and PaddleX with it."""

from dlperf_study.logs.format import JOB_STEP, LOSS, RANK_RATE, RANK_READER, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="paddledetection",
    title="PaddleDetection",
    program="PaddlePaddle/PaddleDetection 2.x, ppdet/engine/callbacks.py",
    lines=(
        Line(
            ("batch_cost: ",),
            rf"ppdet\.engine(?:\.callbacks)? INFO: Epoch: \[{integer('epoch')}\] \[\s*{integer('step')}/\d+\]",
            (
                Field(LOSS, " loss"),
                Field(JOB_STEP, "batch_cost"),
                Field(RANK_READER, "data_cost"),
                Field(RANK_RATE, "ips"),
            ),
        ),
    ),
    rates=("step_seconds",),
    merge=Merge.ONE,
    steps="batches of the epoch, from 0",
    traps=(
        "ips is that of one device: its batch divided by the mean time of the last 20 iterations; only rank 0 prints",
        "a run that is started again appends to the same log",
    ),
)
