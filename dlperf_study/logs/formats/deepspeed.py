"""DeepSpeed's timer of throughput."""

from dlperf_study.logs.format import JOB_RATE, Field, Format, Line, Merge, Metric, MetricScope, integer

_MEAN = Metric("running_throughput", "samples/s", MetricScope.JOB, cumulative=True)

FORMAT = Format(
    name="deepspeed",
    title="DeepSpeed",
    program="microsoft/DeepSpeed, deepspeed/utils/timer.py",
    lines=(
        Line(
            ("RunningAvgSamplesPerSec=",),
            rf"epoch={integer('epoch')}/micro_step=\d+/global_step={integer('step')}, ",
            (Field(_MEAN, "RunningAvgSamplesPerSec"), Field(JOB_RATE, "CurrSamplesPerSec")),
        ),
        Line(
            ("RunningAvgSamplesPerSec=",),
            rf"(?<![=\w]){integer('epoch')}/{integer('step')}, ",
            (Field(_MEAN, "RunningAvgSamplesPerSec"), Field(JOB_RATE, "CurrSamplesPerSec")),
        ),
    ),
    rates=("throughput", "running_throughput"),
    merge=Merge.COPIES,
    steps="updates since the start",
    traps=(
        "the running average keeps the slow first steps for ever: the rate of the last step is used instead",
        "the timer leaves out loading data and all work between steps: compare it with the rate by the clock",
    ),
)
