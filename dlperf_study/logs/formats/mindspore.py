"""MindSpore's TimeMonitor and LossMonitor."""

from dlperf_study.logs.format import LOSS, Field, Format, Line, Merge, Metric, MetricScope, integer, number

_STEP = Metric("step_seconds", "s", MetricScope.RANK, factor=1e-3)
_EPOCH = Metric("epoch_seconds", "s", MetricScope.RANK, factor=1e-3)

FORMAT = Format(
    name="mindspore",
    title="MindSpore",
    program="mindspore-ai/mindspore, mindspore/train/callback (TimeMonitor, LossMonitor)",
    lines=(
        Line(
            ("loss is",),
            rf"epoch:\s*{integer('epoch')}\s+step:\s*{integer('step')},\s*loss is\s+\[?{number('loss')}",
            captured=(LOSS,),
        ),
        Line(
            ("per step time",),
            rf"(?i:epoch time):?\s*{number('epoch_seconds')}(?: ms)?,\s*(?=per step time)",
            (Field(_STEP, "per step time"),),
            (_EPOCH,),
        ),
    ),
    rates=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="steps of the epoch, from 1; a time is the mean of its epoch",
    traps=("the first epoch includes the compilation", "with data sinking a whole epoch is one call to the device"),
    carries_steps=True,
)
