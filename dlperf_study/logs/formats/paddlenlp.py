"""PaddleNLP: its Trainer, and its older example scripts."""

from dlperf_study.logs.format import (
    JOB_STEPS_RATE,
    LOSS,
    Fact,
    Field,
    Format,
    Line,
    Merge,
    Metric,
    MetricScope,
    integer,
    number,
)

_SAMPLES = Metric("interval_samples_per_second", "samples/s", MetricScope.JOB)

FORMAT = Format(
    name="paddlenlp",
    title="PaddleNLP",
    program="PaddlePaddle/PaddleNLP, trainer/trainer.py, and examples of 2.0",
    lines=(
        Line(
            ("interval_runtime: ",),
            rf"\bloss: {number('loss')}, .*?\bglobal_step: {integer('step')}, ",
            (
                Field(_SAMPLES, "interval_samples_per_second"),
                Field(JOB_STEPS_RATE, "interval_steps_per_second"),
            ),
            (LOSS,),
        ),
        Line(
            ("global step ",),
            rf"global step {integer('step')}, epoch: \d+, .*?\bspeed: {number('step_seconds')} steps?/s",
            (Field(LOSS, "loss"),),
            (JOB_STEPS_RATE,),
        ),
    ),
    rates=("step_seconds",),
    merge=Merge.COPIES,
    steps="updates since the start; a line is of those since the line before",
    traps=(
        "interval_samples_per_second is ten times too low in releases of 2022, with ten steps a line: "
        "steps per second × global batch is used instead",
        "interval_tokens_per_second_per_device is of one device, the tokens per second at the end of the job",
    ),
    facts=(
        Fact("global_batch", r"Total train batch size \(w\. parallel, distributed & accumulation\) = ([\d,]+)"),
        Fact("world_size", r" world_size\s+:\s*(\d+)"),
    ),
)
