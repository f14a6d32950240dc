"""VGG16 on PaddlePaddle v2, the program before Fluid."""

from dlperf_study.logs.format import LOSS, RANK_STEP, Fact, Field, Format, Line, Merge, Metric, MetricScope, integer

_PASS = Metric("pass_seconds", "s", MetricScope.RANK)

FORMAT = Format(
    name="paddle_vgg16_v2",
    title="PaddlePaddle v2 VGG16",
    program="PaddlePaddle/Paddle 0.11, benchmark/cluster/vgg16/vgg16_v2.py",
    lines=(
        Line(
            (", Batch ",),
            rf"Pass {integer('epoch')}, Batch {integer('step')},",
            (Field(LOSS, "Cost"), Field(RANK_STEP, "spent")),
        ),
        Line((" end, spent",), rf"Pass {integer('epoch')} end,", (Field(_PASS, "spent"),)),
    ),
    rates=("step_seconds",),
    merge=Merge.SUM,
    steps="batches of the pass, from 0",
    traps=("it prints a time, not a rate: one trainer's rate is its batch / time, and the job's their sum",),
    facts=(Fact("batch_per_device", r"batch_size:? (\d+)"),),
    synchronous=False,
)
