"""MXNet's Speedometer callback."""

from dlperf_study.logs.format import RANK_RATE, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="mxnet_speedometer",
    title="MXNet Speedometer",
    program="apache/mxnet, python/mxnet/callback.py, and forks of it",
    lines=(
        Line(
            ("Speed: ",),
            rf"(?:Node\[{integer('rank')}\]\s+)?(?:Epoch|Iter)\s?\[{integer('epoch')}\]\s+Batch\s?\[(?:\d+-)?{integer('step')}\]",
            (Field(RANK_RATE, "Speed"),),
        ),
    ),
    rates=("throughput",),
    merge=Merge.SUM,
    steps="batches of the epoch",
    traps=(
        "under Horovod the rate is that of one rank; in one process it is that of all its devices",
        "no line says which of the two: one line per step on several devices does not tell the job's rate",
        "old versions print one line per measure of quality, each with the same rate",
    ),
    synchronous=False,
)
