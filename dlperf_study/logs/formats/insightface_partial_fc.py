"""InsightFace's PartialFC under MXNet and Horovod."""

from dlperf_study.logs.format import JOB_RATE, LOSS, Field, Format, Line, Merge, Metric, MetricScope, integer

_DEVICE_RATE = Metric("throughput_per_device", "samples/s", MetricScope.RANK)

FORMAT = Format(
    name="insightface_partial_fc",
    title="InsightFace PartialFC",
    program="deepinsight/insightface, recognition/partial_fc/mxnet/callbacks.py",
    lines=(
        Line(
            (" Rank:",),
            rf"(?:rank-id:{integer('rank')}:.*?)?Iter:\s*{integer('step')}\b",
            (Field(_DEVICE_RATE, "Rank"), Field(JOB_RATE, "Total"), Field(LOSS, "[loss]")),
        ),
    ),
    rates=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start",
    traps=("'it' means samples, not iterations", "'Total' is rank 0's rate × devices"),
)
